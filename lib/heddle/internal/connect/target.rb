# frozen_string_literal: true

module Heddle
  module Connect
    # Holds where to connect to, with which options, and the errors of Ruby's own method when that fails. Each of the
    # methods has a subclass.
    class Target
      attr_reader :host, :port, :local_host, :local_port, :connect_timeout, :began_at

      # @return [Scheduler] the scheduler that waits meanwhile
      attr_reader :scheduler

      # @return [String, nil] the name that is looked up: the host, or the address that Ruby uses for it
      attr_reader :name

      # Takes the arguments of the method.
      def initialize(scheduler, arguments, options, began_at = Clock.now)
        @scheduler = scheduler
        @host, @port, @local_host, @local_port = arguments
        @name = Connect.address_of(@host) || @host
        @resolv_timeout = options[:resolv_timeout]
        @connect_timeout = options[:connect_timeout]
        @open_timeout = options[:open_timeout]
        @racing = fast_fallback(options[:fast_fallback])
        @began_at = began_at
        timeouts_of_ruby.each { |seconds| Connect.check_seconds(seconds) }
      end

      # Finds the only address of the host, which is enough for most hosts.
      #
      # @return [Array(String, Integer), Lookup, nil] the host and the port; else the lookup that has begun
      def find
        return if @local_host || @local_port

        @scheduler.find_address(name, service, [RESOLUTION_DELAY, @resolv_timeout, @open_timeout].compact.min)
      end

      # Should the addresses be tried at the same time?
      def racing? = @racing

      # @return [String, nil]
      def service = @port&.to_s

      # @return [Float, nil] when the name must be known at the latest
      def resolv_at = @resolv_timeout && (@began_at + @resolv_timeout)

      # @return [Float, nil] when everything must be done at the latest
      def open_at = @open_timeout && (@began_at + @open_timeout)

      # @return [Target, nil] the own address, which has to be looked up
      def local
        return unless @local_host || @local_port

        options = { resolv_timeout: @resolv_timeout, open_timeout: @open_timeout, fast_fallback: false }
        self.class.new(@scheduler, [@local_host, @local_port], options)
      end

      # The name of getaddrinfo in a message.
      def resolver = "getaddrinfo"

      # @param error [Exception] the error of the lookup
      def resolution_error(error)
        return error unless resolver == "getaddrinfo" && @host&.end_with?("\n")

        SocketError.new("newline at the end of hostname")
      end

      # Seconds for one attempt.
      # @raise [Exception] when it is too late for another one
      def attempt_timeout
        return @connect_timeout unless @open_timeout

        left = open_at - Clock.now
        left.negative? ? too_late : left
      end

      # @return [Exception] says that the name was not known in time
      def resolution_timed_out = timeout_error("#{@host} port #{@port}")

      # @return [Exception] says that no address has answered in time
      def connect_timed_out = timed_out

      # Is a host looked up for the family of the own address alone?
      def one_family? = false

      private

      # The timeouts for which Ruby has an upper limit.
      def timeouts_of_ruby = [@connect_timeout, @open_timeout]

      # Ruby 3.3 tries the addresses one after the other. Here hosts with several addresses are raced on Ruby 3.3, too.
      def fast_fallback(wanted)
        return true if !RubyFeatures::ADDRESSES_ARE_RACED && wanted.nil?

        wanted.nil? ? Socket.tcp_fast_fallback != false : wanted
      end

      # @return [Exception]
      def timeout_error(place)
        return Errno::ETIMEDOUT.new("user specified timeout") unless RubyFeatures::CONNECT_RAISES_IO_TIMEOUT

        IO::TimeoutError.new("user specified timeout for #{place}")
      end
    end
  end
end
