# frozen_string_literal: true

require_relative "ruby_features"

module Heddle
  # Connects to a host by name, for TCPSocket.new and Socket.tcp (core_ext/tcp_connect.rb): it uses the system's
  # resolver on a worker thread, and races the addresses as RFC 8305 says, while other fibers run.
  #
  # The arguments are examined in C (tcp_connect.c): by_name?, address_of, check_seconds. RESOLUTION_DELAY is defined
  # there, too: the seconds that one family of addresses has to wait for the other one.
  module Connect
    # Seconds until the next address is tried beside one that has not answered.
    ATTEMPT_DELAY = 0.25
    # The keywords that this Ruby's TCPSocket.new and Socket.tcp know.
    OPTIONS = [:connect_timeout, :resolv_timeout, (:open_timeout if RubyFeatures::OPEN_TIMEOUT_IS_KNOWN),
               (:fast_fallback if RubyFeatures::ADDRESSES_ARE_RACED)].compact.freeze
    TIMEOUTS = (OPTIONS - [:fast_fallback]).freeze
    private_constant :TIMEOUTS

    class << self
      # @param address [String] a packed sockaddr
      # @return [Integer] AF_INET6 or AF_INET
      def family_of(address) = address.unpack1("S")

      # @return [Integer]
      def other_family(address) = family_of(address) == Socket::AF_INET ? Socket::AF_INET6 : Socket::AF_INET

      # For TCPSocket.new, when a Heddle scheduler runs and the host may be a name.
      #
      # @param lookup [Lookup, nil] the lookup of the host that has begun; nil: none has begun
      # @param began_at [Float, nil] when it has begun
      # @yield Ruby's own way, with arguments as TCPSocket.new takes them
      def open_tcp_socket(tcp_socket, scheduler, lookup, began_at, *arguments, **options, &connect)
        return yield(*arguments, **options) unless options?(options)

        target = TCPSocketTarget.new(scheduler, arguments, options, began_at || Clock.now)
        lookup ? target.race(tcp_socket, lookup, &connect) : target.open(tcp_socket, &connect)
      end

      # For TCPSocket.new, when a connection to the only address is impossible.
      def raise_failure(scheduler, error, *arguments)
        TCPSocketTarget.new(scheduler, arguments, {}).raise_failure(error)
      end

      # For Socket.tcp.
      #
      # @return [SocketTarget, nil] nil: Ruby has to connect
      def socket_target(arguments, options)
        scheduler = Scheduler.current
        return unless scheduler && by_name?(arguments) && options?(options)

        SocketTarget.new(scheduler, arguments, options)
      end

      private

      def options?(options)
        (options.keys - OPTIONS).empty? && TIMEOUTS.all? { |name| seconds?(options[name]) } &&
          !(options[:open_timeout] && (options[:connect_timeout] || options[:resolv_timeout]))
      end

      def seconds?(value)
        value.nil? || ((value.is_a?(Integer) || value.is_a?(Float) || value.is_a?(Rational)) && value >= 0)
      end
    end
  end
  private_constant :Connect
end

require_relative "connect/addresses"
require_relative "connect/target"
require_relative "connect/tcp_socket_target"
require_relative "connect/socket_target"
require_relative "connect/race"
