# frozen_string_literal: true

require_relative "stream"
require_relative "http1"

module Heddle
  class Server
    # A connection of a client, from its accept to its close. While it is idle it is only an object of
    # {IdleConnections}.
    #
    # @private
    class Connection
      # Who the client is, as protocol-rack asks for it. The requests of a +network+ are counted together; nil: they are
      # not counted.
      Peer = Struct.new(:ip_address, :network)
      # As Puma says it. Proxies on the same machine use UNIX sockets, and Rack trusts this address.
      LOCAL = Peer.new("127.0.0.1").freeze
      private_constant :LOCAL
      # ioctl_tcp(2): bytes that were written, and not confirmed by the other side.
      SIOCOUTQ = 0x5411
      # States of TCP in which the other side has closed it: CLOSE and CLOSE_WAIT.
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
      # @return [String] its address and port, for Heddle.dump
      attr_reader :client

      # @param server [Server]
      # @param socket [IO] what accept has returned
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

      # Serves it until it ends, or has nothing to say for a while.
      #
      # @return [Symbol] :idle, :hijacked or :closed
      def serve
        @session ||= open_session
        outcome = @session.run
        outcome = (@session = HTTP2.new(self, @session.stream)).run if outcome == :http2
        outcome
      rescue OpenSSL::SSL::SSLError, SystemCallError, IOError, Heddle::TimeoutError
        outcome = :closed # (it does not speak TLS, or has gone)
      ensure
        close unless %i[idle hijacked].include?(outcome)
      end

      # Ends it when it is idle. A client to which the last answer is still under way may send something meanwhile, if
      # only a frame that asks for more of it.
      #
      # @return [Symbol]
      def leave
        @session.farewell
        @stream.linger(@server.limits)
        :closed
      ensure
        close
      end

      # @return [Boolean] whether a part of what was sent may not be with the client yet
      def under_way?
        count = [0].pack("i")
        @socket.ioctl(SIOCOUTQ, count)
        count.unpack1("i").positive?
      rescue SystemCallError # another number, on a rare kind of machine
        true
      end

      # There are too many.
      #
      # @param linger [Boolean] whether what the client still sends is waited for, so that it sees the answer
      def turn_away(linger:)
        return if @tls || @session # (that one has been idle)

        @socket.write_nonblock(Refusal.new(503).answer)
        Stream.new(@socket, @socket).linger(@server.limits) if linger
      rescue SystemCallError, IOError
        nil
      ensure
        close
      end

      # From time to time while it has a task: gives up an answer that its client takes too slowly, and sees a client
      # that has left.
      #
      # @param now [Float] by Clock
      def look_after(now)
        return unless @session

        @stream.too_slow?(now, @server.limits) { confirmed } ? @stream.cut_off : @session.look_after
      rescue SystemCallError, IOError
        nil # it has gone meanwhile
      end

      # @return [Boolean] whether the client has closed it, or its own direction (tcp(7))
      def left?
        return LEFT.include?(tcp_info.getbyte(0)) if @peer.network

        @socket.recv_nonblock(1, ::Socket::MSG_PEEK, exception: false).to_s.empty?
      rescue SystemCallError, IOError
        true
      end

      # Takes no more requests.
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

      # @return [Integer, nil] bytes that the client has; nil: the kernel does not know (of a UNIX socket, too)
      def confirmed = @peer.network && tcp_info.byteslice(120, 8)&.unpack1("Q")

      # (A client of IPv4 has an address of IPv6 where the server listens for both. Ruby asks getnameinfo(3) in another
      # thread for the text of an address.)
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
