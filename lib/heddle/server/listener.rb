# frozen_string_literal: true

require "openssl"
require "socket"
require "uri"

module Heddle
  class Server
    # Where a server listens.
    #
    # @private
    class Listener
      BACKLOG = 1024
      URLS = "tcp://HOST:PORT, ssl://HOST:PORT?cert=FILE&key=FILE or unix:/PATH"
      private_constant :BACKLOG, :URLS

      # @return [OpenSSL::SSL::SSLContext, nil]
      attr_reader :tls
      # @return [IO] the server socket
      attr_reader :socket

      class << self
        # @param addresses [String, IO, Array<String, IO>]
        # @param http2 [Boolean]
        # @return [Array<Listener>]
        # @raise [ArgumentError] if there is none, or one that is wrong
        def open_all(addresses, http2:)
          addresses = [addresses] unless addresses.is_a?(Array)
          Check.refuse("bind: must have an address") if addresses.empty?

          addresses.map { |address| self.open(address, http2:) }
        end

        # @param address [String, IO, Listener] a URL, or a server socket
        # @param socket [IO, nil] that listens there already
        # @param shared [Boolean] whether other processes listen there, each with a socket of its own
        # @param http2 [Boolean] whether clients that speak TLS may choose HTTP/2
        # @raise [ArgumentError]
        def open(address, socket: nil, shared: false, http2: false)
          return address if address.is_a?(Listener)
          return new(address, nil) if address.respond_to?(:accept)

          other = !address.is_a?(String)
          Check.refuse("bind: must be #{URLS}, or a server socket, not #{Check.shown(address)}") if other
          at = self.address(address)
          tls = tls_of(URI(address), http2 ? %w[h2 http/1.1] : %w[http/1.1])
          socket ||= at.unix? ? (made = unix(at.unix_path)) : tcp(at, shared)
          new(socket, tls, made: !made.nil?)
        end

        # @param host [String] a name or an address, an IPv6 address also without brackets
        # @param port [Integer]
        # @return [String]
        def url(host, port)
          host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
          "tcp://#{host}:#{port}"
        end

        # @param address [String] a URL
        # @return [Addrinfo]
        # @raise [ArgumentError]
        def address(address)
          uri = URI(address)
          Check.refuse(wrong(address)) unless right?(uri)
          return Addrinfo.unix(uri.path) if uri.scheme == "unix"

          files_of(uri) if uri.scheme == "ssl"
          Addrinfo.tcp(uri.hostname.to_s.empty? ? "0.0.0.0" : uri.hostname, uri.port || 9292)
        rescue URI::Error
          Check.refuse(wrong(address))
        rescue SocketError => e
          Check.refuse("bind: #{address} has no address here (#{e.message})")
        end

        # @param socket [Socket] that listens
        # @return [TCPServer, UNIXServer] the same: its accept returns a TCPSocket or a UNIXSocket
        def server_socket(socket)
          socket.autoclose = false
          (socket.local_address.unix? ? UNIXServer : TCPServer).for_fd(socket.fileno)
        end

        private

        def right?(uri)
          case uri.scheme
          when "unix" then !uri.path.to_s.empty?
          when "tcp", "ssl" then (0..65_535).cover?(uri.port || 0) # (Addrinfo would take its rest)
          end
        end

        def wrong(address) = "bind: must be #{URLS}, not #{Check.shown(address)}"

        def tcp(address, shared)
          socket = ::Socket.new(address.afamily, :STREAM)
          socket.setsockopt(:SOCKET, :REUSEADDR, true)
          socket.setsockopt(:SOCKET, :REUSEPORT, true) if shared
          socket.bind(address)
          socket.listen(BACKLOG)
          server_socket(socket)
        rescue SystemCallError
          socket&.close
          raise
        end

        def unix(path)
          remove_left_behind(path)
          UNIXServer.new(path).tap { |server| server.listen(BACKLOG) }
        end

        # A socket that nobody listens on any more is in the way.
        def remove_left_behind(path)
          return unless File.socket?(path)

          UNIXSocket.new(path).close
        rescue Errno::ECONNREFUSED
          File.unlink(path)
        end

        def tls_of(uri, protocols)
          return unless uri.scheme == "ssl"

          cert, key = files_of(uri)
          certificates = OpenSSL::X509::Certificate.load_file(cert)
          private_key = OpenSSL::PKey.read(File.read(key))
          OpenSSL::SSL::SSLContext.new.tap do |context|
            context.add_certificate(certificates.first, private_key, certificates.drop(1))
            context.min_version = OpenSSL::SSL::TLS1_2_VERSION
            context.alpn_select_cb = lambda do |offered|
              (protocols & offered).first || raise(OpenSSL::SSL::SSLError, "the client speaks none of our protocols")
            end
            context.freeze
          end
        rescue OpenSSL::OpenSSLError, ArgumentError => e # (of a key that is not that of the certificate)
          Check.refuse("bind: cert=#{cert} and key=#{key} cannot be used (#{e.message})")
        end

        def files_of(uri)
          options = URI.decode_www_form(uri.query.to_s).to_h
          %w[cert key].map do |name|
            file = options[name] or Check.refuse("bind: ssl:// needs #{name}=FILE")
            next file if File.file?(file) && File.readable?(file)

            Check.refuse("bind: the file of #{name}=#{file} cannot be read")
          end
        end
      end

      # @param socket [IO]
      # @param tls [OpenSSL::SSL::SSLContext, nil]
      # @param made [Boolean] whether the file of a UNIX socket is removed by {#close} in this process
      def initialize(socket, tls, made: false)
        @socket = socket
        @tls = tls
        @address = socket.local_address
        @path = @address.unix_path if @address.unix?
        @owner = made ? Process.pid : nil
      end

      # @return [Listener] with a descriptor of its own
      def dup = self.class.new(@socket.dup, @tls)

      # @return [IO]
      def accept = prepared(@socket.accept)

      # @return [IO, nil] nil: nobody has connected
      def accept_nonblock
        socket = @socket.accept_nonblock(exception: false)
        prepared(socket) unless socket == :wait_readable
      end

      # @return [Integer, nil]
      def port = @path ? nil : @address.ip_port

      # @return [Boolean] whether others may listen at the same address
      def one_of_several? = !@path && @socket.getsockopt(:SOCKET, :REUSEPORT).bool

      # @return [String]
      def to_s
        if @path
          "unix:#{@path}"
        else
          "#{@tls ? "ssl" : "tcp"}://#{@address.inspect_sockaddr}"
        end
      end

      def close
        abandon
        owner = @owner
        @owner = nil # (another task may close it while this one waits for the disk)
        File.unlink(@path) if owner == Process.pid && File.socket?(@path)
      end

      # Closes its descriptor only: others may have the same socket.
      def abandon = @socket.closed? || @socket.close

      private

      def prepared(socket)
        socket.setsockopt(:TCP, :NODELAY, true) unless @path
        socket
      end
    end
  end
end
