# frozen_string_literal: true

require "json"
require_relative "../listener"

module Heddle
  class Server
    # Holds the sockets that the processes of a server listen on. The first process opens them and keeps them. So they
    # outlive a worker that is replaced, and they stay when another program takes the place of this one.
    #
    # All workers accept from the same sockets. So a worker that is missing, that computes or that hangs keeps no
    # connection waiting which another worker could take. With SO_REUSEPORT the kernel would give each socket its share
    # of the connections, even if no process accepts them.
    #
    # A socket that systemd has opened (sd_listen_fds(3)) is used for its address, if a URL asks for that address.
    # Otherwise it is served, too, without TLS.
    #
    # @private
    class Sockets
      DEFAULT = "tcp://127.0.0.1:9292"
      FIRST_PASSED = 3
      INHERITED = "HEDDLE_SERVE_SOCKETS"
      # A socket of the program whose place this one has taken: the URL, whether systemd has opened it, and its file.
      Inherited = Struct.new(:socket, :url, :passed, :file)
      private_constant :DEFAULT, :FIRST_PASSED, :INHERITED, :Inherited

      # @param urls [Array<String>, nil] nil: the sockets that systemd has opened, or else the default address
      # @param http2 [Boolean]
      # @param control [String, nil] the address for health checks and figures
      # @param shared [Boolean] whether several processes accept
      # @raise [ArgumentError]
      # @raise [SystemCallError] if an address cannot be listened on
      def initialize(urls, http2: false, control: nil, shared: false)
        @http2 = http2
        @shared = shared
        @found = from_predecessor + from_systemd
        @kept = {} # Listener => Inherited, with the socket it has
        urls ||= @found.any?(&:passed) ? [] : [DEFAULT]
        @listeners = urls.map { |url| listen(url) }
        @control = listen_for_control(control) if control
        take_rest
      end

      # @return [Array<Listener>] for a process that serves, to be closed by it
      def for_process = @listeners.map { |listener| listener.dup(shared: @shared) }

      # @return [Listener, nil] for a process that serves, to be closed by it
      def control = @control&.dup(shared: @shared)

      # @return [String, nil]
      def control_address = @control&.to_s

      # @return [Array<String>]
      def addresses = @listeners.map(&:to_s)

      # Loads the certificates anew.
      #
      # @yield [error] the error of each certificate that cannot be used, and stays as it is
      def reload
        all.each do |listener|
          listener.reload
        rescue ArgumentError => e
          yield e
        end
      end

      # @return [Array(Hash{String => String}, Hash{Integer => IO})] environment and descriptors for the program that
      #   takes the place of this one
      def handed_over
        list = @kept.values.map { |one| [one.socket.fileno, one.url, one.passed, one.file] }
        [{ INHERITED => JSON.generate(list) }, @kept.values.to_h { |one| [one.socket.fileno, one.socket] }]
      end

      def close = all.each(&:close)

      # Closes the sockets, because no program takes the place of this one. When the sockets of {#for_process} are
      # closed, too, connections are refused: the kernel accepts connections as long as any process has the socket.
      def abandon = all.each(&:abandon)

      private

      def all = [*@listeners, @control].compact

      def listen(url)
        found = take(url)
        listener = Listener.open(url, socket: found && Listener.server_socket(found.socket), file: found&.file,
                                      http2: @http2)
        keep(listener, url, found&.passed)
      end

      def listen_for_control(url)
        listen(url)
      rescue ArgumentError => e
        raise ArgumentError, e.message.sub(/\Abind:/, "control:")
      end

      def keep(listener, url, passed)
        @kept[listener] = Inherited.new(listener.socket, url, passed || false, listener.file)
        listener
      end

      # @return [Inherited, nil] a socket that listens at this address
      def take(url)
        wanted = Address.new(url).addrinfo.to_sockaddr
        found = @found.find { |one| one.url == url } ||
                @found.find { |one| one.socket.local_address.to_sockaddr == wanted }
        @found.delete(found)
      end

      # Serves the remaining sockets that systemd has opened, and closes the other sockets that no URL asks for any
      # more.
      def take_rest
        @found.each do |one|
          listener = Listener.new(Listener.server_socket(one.socket), file: one.file)
          next listener.close unless one.passed

          @listeners << keep(listener, nil, true)
        end
      end

      def from_predecessor
        JSON.parse(ENV.delete(INHERITED) || "[]").map { |fd, *rest| Inherited.new(socket_of(fd), *rest) }
      end

      def from_systemd
        pid = ENV.delete("LISTEN_PID")
        count = ENV.delete("LISTEN_FDS")
        ENV.delete("LISTEN_FDNAMES")
        return [] unless pid == Process.pid.to_s

        Array.new(Integer(count)) { |number| Inherited.new(listening(FIRST_PASSED + number), nil, true, nil) }
      end

      def listening(fd)
        socket_of(fd).tap do |socket|
          next if socket.getsockopt(:SOCKET, :ACCEPTCONN).bool

          raise ArgumentError, "bind: a socket of systemd does not listen: it needs ListenStream= and Accept=no"
        end
      end

      def socket_of(fd)
        ::Socket.for_fd(fd).tap { |socket| socket.close_on_exec = true }
      end
    end
  end
end
