# frozen_string_literal: true

require_relative "listener"

module Heddle
  class Server
    # The sockets that the processes of a server listen on. The first process opens them and keeps them: they outlive a
    # worker that is replaced, and the process that replaces this one. What connects meanwhile waits in their queues.
    #
    # Each worker has a TCP socket of its own (SO_REUSEPORT), over which the kernel spreads the connections; a UNIX
    # socket is shared, and so is one of systemd's without ReusePort=yes. Sockets that systemd has opened
    # (sd_listen_fds(3)) are used where their address is asked for, and served without TLS where it is not.
    #
    # @private
    class Sockets
      FIRST_PASSED = 3
      INHERITED = "HEDDLE_SERVE_SOCKETS"
      private_constant :FIRST_PASSED, :INHERITED

      # @param addresses [Array<String>]
      # @param workers [Integer]
      # @param http2 [Boolean]
      # @param control [String, nil] the address for health checks and figures, which all workers share
      # @raise [ArgumentError]
      # @raise [SystemCallError] if it cannot listen there
      def initialize(addresses, workers, http2: false, control: nil)
        @http2 = http2
        @inherited = from_predecessor
        @passed = from_systemd
        @addresses = addresses
        @listeners = Array.new(workers) { [] } # of each worker
        @opened = [] # [address, listener] of all
        addresses.each { |address| listen(address, workers) }
        @control = open_control(control) if control
        @passed.each { |socket| share(Listener.open(Listener.server_socket(socket))) }
      end

      # @param number [Integer] of the worker
      # @return [Array<Listener>] for it, to be closed by it
      def for_worker(number) = @listeners[number].map(&:dup)

      # @return [Listener, nil] for a worker, to be closed by it
      def control = @control&.dup

      # @return [String, nil]
      def control_address = @control&.to_s

      # @return [Array<String>]
      def addresses = @listeners.flatten.map(&:to_s).uniq

      # @return [Array(Hash{String => String}, Hash{Integer => IO})] environment and descriptors for the program that
      #   takes the place of this one
      def handed_over
        [{ INHERITED => @opened.map { |address, listener| "#{listener.socket.fileno}=#{address}" }.join("\n") },
         @opened.to_h { |_, listener| [listener.socket.fileno, listener.socket] }]
      end

      def close = all.each(&:close)

      # Nobody is to take its place: when those of {#for_worker} are closed, too, connections are refused. (The kernel
      # takes them as long as any process has the socket.)
      def abandon = all.each(&:abandon)

      private

      def all = [*@listeners.flatten.uniq, @control].compact

      def listen(address, workers)
        first = take_or_open(address, address, workers > 1)
        return share(first) unless first.one_of_several?

        @listeners.first << first
        same = address.sub(%r{:0+(?=\z|[?/])}, ":#{first.port}")
        @listeners.drop(1).each { |own| own << take_or_open(address, same, true) }
      end

      def open_control(address)
        take_or_open(address, address, false)
      rescue ArgumentError => e
        raise ArgumentError, e.message.sub(/\Abind:/, "control:")
      end

      def take_or_open(name, address, shared)
        socket = @inherited[name]&.shift || passed(address)
        Listener.open(address, socket: socket && Listener.server_socket(socket), shared:,
                               http2: @http2).tap do |listener|
          @opened << [name, listener]
        end
      end

      def passed(address)
        wanted = Listener.address(address).to_sockaddr
        found = @passed.find { |socket| socket.local_address.to_sockaddr == wanted }
        @passed.delete(found)
      end

      def share(listener) = @listeners.each { |own| own << listener }

      # @return [Hash{String => Array<Socket>}] by address
      def from_predecessor
        lines = ENV.delete(INHERITED).to_s.lines(chomp: true)
        lines.each_with_object({}) do |line, found|
          fd, address = line.split("=", 2)
          (found[address] ||= []) << take(Integer(fd))
        end
      end

      def from_systemd
        pid = ENV.delete("LISTEN_PID")
        count = ENV.delete("LISTEN_FDS")
        ENV.delete("LISTEN_FDNAMES")
        return [] unless pid == Process.pid.to_s

        Array.new(Integer(count)) { |number| take(FIRST_PASSED + number) }
      end

      def take(fd)
        ::Socket.for_fd(fd).tap { |socket| socket.close_on_exec = true }
      end
    end
  end
end
