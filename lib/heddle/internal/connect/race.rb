# frozen_string_literal: true

module Heddle
  module Connect
    # Connects to the first address of a host that answers.
    class Race
      # @param target [Target]
      # @param lookup [Lookup, nil] a lookup of the host's addresses of both families, if it has been started
      def initialize(target, lookup)
        @target = target
        @lookup = lookup
        @attempts = {} # socket => its address
        @failure = @next_attempt_at = @connect_at = nil
      end

      # @return [Socket, true] connected (true: TCPSocket.new has done it itself)
      def run
        @locals = local_addresses
        @addresses = Addresses.new(@target, family, @lookup)
        @target.racing? ? race : one_after_another
      ensure
        (@addresses || @lookup)&.release
        @attempts.each_key(&:close)
      end

      # Makes a new TCPSocket the owner of the connection, in the mode in which Ruby opens its own.
      def run_for(tcp_socket)
        socket = run
        return if socket == true

        socket.autoclose = false
        IO.instance_method(:initialize).bind_call(tcp_socket, socket.fileno, "r+b")
        tcp_socket.sync = true
        tcp_socket.do_not_reverse_lookup = BasicSocket.do_not_reverse_lookup
      end

      private

      # -- addresses --

      def local_addresses
        local = @target.local or return
        addresses = Addresses.new(local, Socket::AF_UNSPEC)
        await_all(addresses, local)
        found = []
        found << addresses.shift until addresses.empty?
        found
      ensure
        addresses&.release
      end

      def family
        families = @locals.to_a.map { |address| Connect.family_of(address) }.uniq
        families.size == 1 && @target.one_family? ? families.first : Socket::AF_UNSPEC
      end

      # Waits until all addresses are known.
      def await_all(addresses, target)
        limit = @target.open_at || @target.resolv_at
        until addresses.finished?
          wait(addresses.lookups, [], limit)
          addresses.collect
          raise target.resolution_timed_out if limit && !addresses.finished? && Clock.now >= limit
        end
        raise addresses.error if addresses.empty?
      end

      def wait(lookups, sockets, limit)
        left = limit && [limit - Clock.now, 0].max
        @target.scheduler.wait_for_connection(@target.host, lookups, sockets, left)
      end

      # -- one after the other --

      def one_after_another
        await_all(@addresses, @target)
        until @addresses.empty?
          connected = connect(@addresses.shift)
          return connected if connected
        end
        raise @failure || @target.no_local_address
      end

      # Connects to an address when no other is left.
      def connect(address)
        local = local_for(address)
        return if @locals && !local

        @target.connect(address, local, @target.attempt_timeout)
      rescue SystemCallError, IO::TimeoutError => e
        raise if @target.final?(e)

        @failure = with_backtrace(@target.failure(e, address), e)
        nil
      end

      def local_for(address)
        @locals&.find { |local| Connect.family_of(local) == Connect.family_of(address) }
      end

      # -- at the same time --

      def race
        loop do
          connected = start_attempts if !@addresses.empty? && attempt_due?
          return connected if connected

          raise_when_over
          ready = wait(@addresses.lookups, @attempts.keys, wake_at)
          connected = ready.find { |socket| connected?(socket) }
          return connected if connected

          @addresses.collect
          check_timeouts
        end
      end

      def attempt_due?
        @next_attempt_at.nil? || Clock.now >= @next_attempt_at
      end

      # Starts attempts until one of them is under way.
      def start_attempts
        until @addresses.empty?
          connected = @addresses.single? && @attempts.empty? ? connect(@addresses.shift) : attempt(@addresses.shift)
          return if connected == :under_way
          return connected if connected
        end
      end

      def attempt(address)
        local = local_for(address)
        return if @locals && !local

        socket = Socket.new(Connect.family_of(address), :STREAM)
        socket.bind(Addrinfo.new(local)) if local && @target.prepare(socket)
        return begin_attempt(socket, address) if socket.connect_nonblock(address, exception: false) == :wait_writable

        @attempts.delete(connected = socket)
        connected
      rescue SystemCallError => e
        @failure = with_backtrace(@target.failure(e, address), e)
        nil
      ensure
        socket&.close unless connected || @attempts.key?(socket)
      end

      def begin_attempt(socket, address)
        @attempts[socket] = address
        @next_attempt_at = Clock.now + ATTEMPT_DELAY
        @connect_at = @target.connect_timeout && (Clock.now + @target.connect_timeout) if @addresses.empty?
        :under_way
      end

      # Handles a socket that has become writable. When its attempt has failed, the next one need not wait.
      def connected?(socket)
        address = @attempts.delete(socket)
        error = socket.getsockopt(:SOCKET, :ERROR).int
        return true if error.zero?

        socket.close
        @failure = @target.failure(SystemCallError.new("connect(2)", error), address)
        @next_attempt_at = nil
        false
      end

      def raise_when_over
        return unless @addresses.empty? && @addresses.finished? && @attempts.empty?

        raise @failure || @addresses.error || @target.no_local_address
      end

      def wake_at
        [@addresses.split_at, limit].compact.min
      end

      # The next time at which the loop must act even if nothing happens; nil: never.
      def limit
        return [@next_attempt_at, @target.open_at].compact.min unless @addresses.empty?
        return @target.open_at if @target.open_at
        return if !@addresses.finished? && !@target.resolv_at
        return if @attempts.any? && !@connect_at

        [(@target.resolv_at unless @addresses.finished?), (@connect_at if @attempts.any?)].compact.max
      end

      # A connect_timeout counts from the attempt at the last address; the name may become known late, when an attempt
      # is already under way.
      def check_timeouts
        now = Clock.now
        raise @target.timed_out if @target.open_at && now >= @target.open_at
        return unless @addresses.empty?
        return if @addresses.finished? && @attempts.empty?

        raise @target.connect_timed_out if @addresses.finished? && past?(@connect_at, now)
        return unless past?(@target.resolv_at, now)
        raise @target.timed_out if @attempts.empty? || past?(@connect_at, now)
      end

      def past?(time, now) = time && now >= time

      def with_backtrace(error, cause)
        error.set_backtrace(cause.backtrace) unless error.equal?(cause)
        error
      end
    end
  end
end
