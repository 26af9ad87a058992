# frozen_string_literal: true

require "socket"
require_relative "address"

module Heddle
  class Server
    # A socket that a server listens on.
    #
    # @private
    class Listener
      BACKLOG = 1024
      # The option of tcp(7) that limits the bytes of a connection that wait in the kernel to be sent, and its value.
      # Without it the kernel takes up to 4 MB of an answer for each client that reads nothing. Accepted sockets inherit
      # it.
      NOTSENT_LOWAT = 25
      UNSENT = 256 * 1024
      private_constant :BACKLOG, :NOTSENT_LOWAT, :UNSENT

      # @return [IO] the server socket
      attr_reader :socket
      # @return [Array(Integer, Integer), nil] device and inode of the file of a UNIX socket that this server has made
      attr_reader :file

      class << self
        # @param addresses [String, IO, Array<String, IO>]
        # @param http2 [Boolean]
        # @return [Array<Listener>]
        # @raise [ArgumentError] if no address is given, or one is wrong
        def open_all(addresses, http2:)
          addresses = [addresses] unless addresses.is_a?(Array)
          Check.refuse("bind: must have an address") if addresses.empty?

          addresses.map { |address| self.open(address, http2:) }
        end

        # @param address [String, IO, Listener] a URL, or a server socket
        # @param socket [IO, nil] a socket that listens there already
        # @param file [Array(Integer, Integer), nil] the file of that socket: see {#file}
        # @param http2 [Boolean] whether clients that speak TLS may choose HTTP/2
        # @raise [ArgumentError]
        def open(address, socket: nil, file: nil, http2: false)
          return address if address.is_a?(Listener)
          return new(address) if address.respond_to?(:accept)

          other = !address.is_a?(String)
          Check.refuse("bind: must be #{Address::URLS}, or a server socket, not #{Check.shown(address)}") if other
          at = Address.new(address)
          certificate = certificate_of(at, http2)
          socket, file = listen(at) unless socket
          new(socket, certificate:, file:)
        end

        # @param host [String] a name or an address, an IPv6 address also without brackets
        # @param port [Integer]
        # @return [String]
        def url(host, port)
          host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
          "tcp://#{host}:#{port}"
        end

        # @param socket [Socket] a socket that listens
        # @return [TCPServer, UNIXServer] the same socket: its accept returns a TCPSocket or a UNIXSocket
        def server_socket(socket)
          socket.autoclose = false
          (socket.local_address.unix? ? UNIXServer : TCPServer).for_fd(socket.fileno)
        end

        private

        def certificate_of(address, http2)
          return unless address.files

          require_relative "certificate"
          Certificate.new(*address.files, http2 ? %w[h2 http/1.1] : %w[http/1.1])
        end

        # Opens a socket that listens. The file of a UNIX socket gets its mode before anybody can connect.
        def listen(address)
          at = address.addrinfo
          socket = ::Socket.new(at.afamily, :STREAM)
          at.unix? ? remove_left_behind(at) : socket.setsockopt(:SOCKET, :REUSEADDR, true)
          socket.bind(at)
          file = made(at.unix_path, address.mode) if at.unix? && !abstract?(at)
          socket.listen(BACKLOG)
          [server_socket(socket), file]
        rescue SystemCallError
          socket&.close
          raise
        end

        def made(path, mode)
          File.chmod(mode, path)
          File.stat(path).then { |stat| [stat.dev, stat.ino] }
        end

        def abstract?(address) = address.unix_path.start_with?("\0")

        # Removes the file of a UNIX socket that nobody listens on any more, because it is in the way.
        def remove_left_behind(address)
          return if abstract?(address) || !File.socket?(address.unix_path)

          socket = ::Socket.new(:UNIX, :STREAM)
          socket.connect_nonblock(address, exception: false) # connect would wait for a full queue
        rescue Errno::ECONNREFUSED
          File.unlink(address.unix_path)
        rescue SystemCallError
          nil # the bind raises the error
        ensure
          socket&.close
        end
      end

      # @param socket [IO]
      # @param certificate [Certificate, nil]
      # @param file [Array(Integer, Integer), nil] see {#file}: {#close} removes it in this process
      # @param shared [Boolean] whether other processes accept from the same socket
      def initialize(socket, certificate: nil, file: nil, shared: false)
        @socket = socket
        @certificate = certificate
        @address = socket.local_address
        @path = @address.unix_path if @address.unix?
        socket.setsockopt(:TCP, NOTSENT_LOWAT, UNSENT) unless @path
        @file = file
        @owner = Process.pid
        @shared = shared
      end

      # @param shared [Boolean]
      # @return [Listener] with a descriptor of its own
      def dup(shared: @shared) = self.class.new(@socket.dup, certificate: @certificate, shared:)

      # @return [OpenSSL::SSL::SSLContext, nil]
      def tls = @certificate&.context

      # Loads the certificate anew, for this listener and for the listeners that {#dup} has made of it.
      #
      # @raise [ArgumentError] if it cannot be used
      def reload = @certificate&.load

      # @return [IO]
      def accept
        return prepared(@socket.accept) unless @shared

        # All processes wake up for a connection. A process that has something else to do does that first, so the
        # connection goes to a process that is idle.
        loop do
          @socket.wait_readable
          sleep(0)
          connection = accept_nonblock and return connection
        end
      end

      # @return [IO, nil] nil: nobody has connected
      def accept_nonblock
        socket = @socket.accept_nonblock(exception: false)
        prepared(socket) unless socket == :wait_readable
      end

      # @return [Integer, nil]
      def port = @path ? nil : @address.ip_port

      # @return [String]
      def to_s
        return "unix:#{@path.sub(/\A\0/, "@")}" if @path

        "#{@certificate ? "ssl" : "tcp"}://#{@address.inspect_sockaddr}"
      end

      def close
        abandon
        file = @file
        @file = nil # another task may close it while this one waits for the disk
        return unless file && @owner == Process.pid

        File.unlink(@path) if File.stat(@path).then { |stat| [stat.dev, stat.ino] } == file
      rescue SystemCallError
        nil # the file has gone
      end

      # Closes only the descriptor of this listener: others may have the same socket.
      def abandon = @socket.closed? || @socket.close

      private

      def prepared(socket)
        socket.setsockopt(:TCP, :NODELAY, true) unless @path
        socket
      end
    end
  end
end
