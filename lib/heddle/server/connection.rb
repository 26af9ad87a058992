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
      # Who the client is, as protocol-rack asks for it.
      Peer = Struct.new(:ip_address)
      # ioctl_tcp(2): bytes that were written, and not confirmed by the other side.
      SIOCOUTQ = 0x5411
      private_constant :Peer, :SIOCOUTQ

      # @return [Server]
      attr_reader :server
      # @return [IO]
      attr_reader :socket
      # @return [String] "http" or "https"
      attr_reader :scheme
      # @return [#ip_address, nil] nil for a UNIX socket
      attr_reader :peer

      # @param server [Server]
      # @param socket [IO] what accept has returned
      # @param tls [OpenSSL::SSL::SSLContext, nil]
      def initialize(server, socket, tls)
        @server = server
        @socket = socket
        @tls = tls
        @scheme = tls ? "https" : "http"
        @peer = Peer.new(socket.remote_address.ip_address) unless socket.is_a?(UNIXSocket)
      end

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
