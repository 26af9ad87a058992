# frozen_string_literal: true

require_relative "stream"
require_relative "http1"

module Heddle
  class Server
    # A connection of a client, from its accept to its close. While it is idle, it has no task, and is only an object of
    # {IdleConnections}.
    #
    # @private
    class Connection
      # The client, as protocol-rack asks for it. The requests of a +network+ are counted together. If it is nil, they
      # are not counted.
      Peer = Struct.new(:ip_address, :network)
      # The client of a UNIX socket, with the address that Puma gives it. Proxies on the same machine use UNIX sockets,
      # and Rack trusts this address.
      LOCAL = Peer.new("127.0.0.1").freeze
      private_constant :LOCAL
      # The request of ioctl_tcp(2) for the bytes that were written, and not confirmed by the other side.
      SIOCOUTQ = 0x5411
      # States of TCP in which the other side has closed the connection: CLOSE and CLOSE_WAIT.
      LEFT = [7, 8].freeze
      private_constant :Peer, :SIOCOUTQ, :LEFT

      # @return [Server]
      attr_reader :server
      # @return [IO]
      attr_reader :socket
      # @return [String] "http" or "https"
      attr_reader :scheme
      # @return [Peer]
      attr_reader :peer
      # @return [String] the client's address and port, for Heddle.dump
      attr_reader :client

      # @param server [Server]
      # @param socket [IO] the socket that accept has returned
      # @param tls [OpenSSL::SSL::SSLContext, nil]
      def initialize(server, socket, tls)
        @server = server
        @socket = socket
        @tls = tls
        @scheme = tls ? "https" : "http"
        @peer = LOCAL
        @client = "a UNIX socket"
        name_client(socket.remote_address) unless socket.is_a?(UNIXSocket)
      end

      # @return [String] for Heddle.dump
      def description = @session&.description || "connection of #{@client}"

      # Serves the connection until it ends, or until nothing has come for a while.
      #
      # @return [Symbol] :idle, :hijacked or :closed
      def serve
        @session ||= open_session
        outcome = @session.run
        outcome = (@session = HTTP2.new(self, @session.stream)).run if outcome == :http2
        outcome
      rescue OpenSSL::SSL::SSLError, SystemCallError, IOError, Heddle::TimeoutError
        outcome = :closed # the client does not speak TLS, or has gone
      ensure
        close unless %i[idle hijacked].include?(outcome)
      end

      # Ends an idle connection. A client to which the last answer is still under way may send something meanwhile, such
      # as a frame that asks for more of it.
      #
      # @return [Symbol]
      def leave
        @session.farewell
        @stream.linger(@server.limits)
        :closed
      ensure
        close
      end

      # @return [Boolean] whether bytes that were sent may not have reached the client yet
      def under_way?
        count = [0].pack("i")
        @socket.ioctl(SIOCOUTQ, count)
        count.unpack1("i").positive?
      rescue SystemCallError # another number, on a rare kind of machine
        true
      end

      # Refuses the connection with a 503, because too many are open.
      #
      # @param linger [Boolean] whether to wait for the bytes that the client still sends, so that it sees the answer
      def turn_away(linger:)
        return if @tls || @session # a connection with a session has been idle

        @socket.write_nonblock(Refusal.new(503).answer)
        Stream.new(@socket, @socket).linger(@server.limits) if linger
      rescue SystemCallError, IOError
        nil
      ensure
        close
      end

      # Gives up an answer that its client takes too slowly, and notices a client that has left. The server calls this
      # from time to time while the connection has a task.
      #
      # @param now [Float] by Clock
      def look_after(now)
        return unless @session

        @stream.too_slow?(now, @server.limits) { confirmed } ? @stream.cut_off : @session.look_after
      rescue SystemCallError, IOError
        nil # the client has gone meanwhile
      end

      # @return [Boolean] whether the client has closed the connection, or its own direction of it (tcp(7))
      def left?
        return LEFT.include?(tcp_info.getbyte(0)) if @peer.network

        @socket.recv_nonblock(1, ::Socket::MSG_PEEK, exception: false).to_s.empty?
      rescue SystemCallError, IOError
        true
      end

      # Stops taking requests.
      def drain = @session&.drain

      def close
        @session&.farewell
        @io&.close
        @socket.close
      rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
        nil
      end

      private

      def tcp_info = @socket.getsockopt(:TCP, :INFO).data

      # @return [Integer, nil] bytes that the client has received; nil: the kernel does not know, as for a UNIX socket
      def confirmed = @peer.network && tcp_info.byteslice(120, 8)&.unpack1("Q")

      # Sets the address of the client. A client of IPv4 has an address of IPv6 if the server listens for both. The text
      # of an IPv4 address is made here, because Ruby asks getnameinfo(3) in another thread for it.
      def name_client(remote)
        address = remote.ipv6_v4mapped? ? remote.ipv6_to_ipv4 : remote
        ip = address.ipv4? ? address.to_sockaddr.unpack("x4C4").join(".") : address.ip_address
        @peer = Peer.new(ip, address.ipv6? ? address.to_sockaddr.byteslice(8, 8) : ip)
        @client = "#{address.ipv6? ? "[#{ip}]" : ip}:#{remote.ip_port}"
      end

      def open_session
        @stream = open_stream
        (@io&.alpn_protocol == "h2" ? HTTP2 : HTTP1).new(self, @stream)
      end

      def open_stream
        return Stream.new(@socket, @socket) unless @tls

        ssl = OpenSSL::SSL::SSLSocket.new(@socket, @tls)
        ssl.sync_close = true
        Heddle.timeout(@server.limits.handshake) { ssl.accept }
        @io = ssl
        Stream.new(ssl, @socket)
      end
    end
  end
end
