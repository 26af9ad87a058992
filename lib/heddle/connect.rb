# frozen_string_literal: true

require_relative "ruby_features"

module Heddle
  # Connecting to a host by name, for TCPSocket.new and Socket.tcp (core_ext/tcp_connect.rb): the system's resolver on
  # a worker thread, and the addresses raced as RFC 8305 says, while the other fibers run.
  module Connect
    # Seconds that one family of addresses has to wait for the other one.
    RESOLUTION_DELAY = 0.05
    # Seconds until the next address is tried beside one that has not answered.
    ATTEMPT_DELAY = 0.25
    # Hosts that Ruby takes for an address.
    SPECIAL = { "" => "0.0.0.0", "<any>" => "0.0.0.0", "<broadcast>" => "255.255.255.255" }.freeze
    LONGEST_HOST = 1024
    LONGEST_SERVICE = 31
    SOCKADDR_IN_SIZE = 16
    # The keywords that this Ruby's TCPSocket.new and Socket.tcp know.
    OPTIONS = [:resolv_timeout, :connect_timeout, (:fast_fallback if RubyFeatures::ADDRESSES_ARE_RACED),
               (:open_timeout if RubyFeatures::OPEN_TIMEOUT_IS_KNOWN)].compact.freeze
    TIMEOUTS = (OPTIONS - [:fast_fallback]).freeze
    private_constant :SPECIAL, :LONGEST_HOST, :LONGEST_SERVICE, :SOCKADDR_IN_SIZE, :OPTIONS, :TIMEOUTS

    class << self
      # @return [Float] seconds
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @param address [String] a packed sockaddr
      # @return [Integer] AF_INET6 or AF_INET
      def family_of(address) = address.bytesize > SOCKADDR_IN_SIZE ? Socket::AF_INET6 : Socket::AF_INET

      # @return [Integer]
      def other_family(address) = address.bytesize > SOCKADDR_IN_SIZE ? Socket::AF_INET : Socket::AF_INET6

      # For TCPSocket.new, when a Heddle scheduler runs and the host may be a name.
      #
      # @yield Ruby's own way, with arguments as TCPSocket.new takes them
      def open_tcp_socket(tcp_socket, scheduler, *arguments, **options, &connect)
        return yield(*arguments, **options) unless by_name?(arguments, options)

        TCPSocketTarget.new(scheduler, arguments, options).open(tcp_socket, &connect)
      end

      # For TCPSocket.new with nothing but a host and a port, when the host is no single address that was found at
      # once.
      #
      # @param lookup [Lookup] what has been begun
      # @param began_at [Float] and when
      # @yield as above
      def race_for_tcp_socket(tcp_socket, scheduler, lookup, began_at, *arguments, &connect)
        TCPSocketTarget.new(scheduler, arguments, {}, began_at).race(tcp_socket, lookup, &connect)
      end

      # For TCPSocket.new, when the only address cannot be connected to.
      def raise_failure(scheduler, error, *arguments)
        TCPSocketTarget.new(scheduler, arguments, {}).raise_failure(error)
      end

      # For Socket.tcp.
      #
      # @return [SocketTarget, nil] nil: it is Ruby's to connect
      def socket_target(arguments, options)
        scheduler = Scheduler.current
        return unless scheduler && by_name?(arguments, options)

        SocketTarget.new(scheduler, arguments, options)
      end

      private

      # @return [Boolean] can these arguments only be served by looking a name up? Whatever is not as Ruby wants it is
      #   Ruby's to refuse.
      def by_name?(arguments, options)
        return false unless arguments.size.between?(2, 4)

        host, port, local_host, local_port = arguments
        return false unless service?(port) && (name?(host) || (service_name?(port) && address?(host)))

        host?(local_host) && service?(local_port) && (options.empty? || options?(options))
      end

      def name?(host)
        host.nil? || (host?(host) && !SPECIAL.include?(host) && !Lookup.numeric?(host))
      end

      def address?(host)
        host?(host) && !SPECIAL.include?(host)
      end

      def host?(host)
        host.nil? || text?(host, LONGEST_HOST)
      end

      # (Ruby takes only numbers of ports when a scheduler resolves.)
      def service_name?(port)
        port.is_a?(Integer) ? !port.between?(0, 65_535) : port.is_a?(String) && port.match?(/\D/)
      end

      def service?(port)
        port.nil? || port.is_a?(Integer) || text?(port, LONGEST_SERVICE)
      end

      def text?(text, longest)
        text.is_a?(String) && text.bytesize <= longest && text.encoding.ascii_compatible? && !text.include?("\0")
      end

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

require_relative "connect/names"
require_relative "connect/target"
require_relative "connect/tcp_socket_target"
require_relative "connect/socket_target"
require_relative "connect/race"
