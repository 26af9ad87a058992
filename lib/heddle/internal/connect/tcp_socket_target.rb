# frozen_string_literal: true

module Heddle
  module Connect
    # The target of TCPSocket.new. Its messages name the host as it was given.
    class TCPSocketTarget < Target
      # @param tcp_socket [TCPSocket] the socket that gets the connection
      # @yield connects it to one address, with the arguments of Ruby's own TCPSocket.new
      def open(tcp_socket, &connect)
        found = find
        return race(tcp_socket, found, &connect) unless found.is_a?(Array)

        begin
          connect.call(*found, connect_timeout: attempt_timeout)
        rescue SystemCallError, IO::TimeoutError => e
          raise_failure(e)
        end
      end

      # Connects when the host has several addresses, or none is known yet.
      #
      # @param lookup [Lookup, nil] the lookup that has begun
      # @yield connects it to one address, with the arguments of Ruby's own TCPSocket.new
      def race(tcp_socket, lookup, &connect)
        @connect = connect
        Race.new(self, lookup).run_for(tcp_socket)
      end

      # @raise [Exception] Ruby's error for a failure at the only address
      def raise_failure(error)
        raise final?(error) ? error : failure(error), cause: error.cause # the error that is being rescued there
      end

      # Ruby's two ways to connect use different names for the resolver.
      def resolver
        raced = RubyFeatures::ADDRESSES_ARE_RACED && racing? && !@one_family
        raced && !Connect.address_of(@host) ? "getaddrinfo(3)" : super
      end

      # Ruby restricts the lookup to one family only when it races.
      def one_family? = @one_family = RubyFeatures::ADDRESSES_ARE_RACED && racing?

      # @return [true] connected
      def connect(address, local, timeout)
        host, port = Lookup.host_and_port(address)
        return open_socket(address, local, timeout) if host.include?("%") # Ruby's numeric hosts know no zones

        local_host, local_port = Lookup.host_and_port(local) if local
        @connect.call(host, port, local_host, local_port, connect_timeout: timeout)
        true
      end

      # Returns Ruby's error for a failure at one of the addresses.
      def failure(error, _address = nil)
        syscall = error.message[/(?:socket|bind|connect)\(2\)/] || "connect(2)"
        host, port = syscall == "bind(2)" ? [@local_host, @local_port] : [@host, @port]
        message = "#{syscall} for #{host.inspect} port #{port}"
        return IO::TimeoutError.new(message) if error.is_a?(IO::TimeoutError) || error.is_a?(Errno::ETIMEDOUT)

        SystemCallError.new(message, error.errno)
      end

      # Does the error end all attempts, not only this one? From Ruby 3.4 on a connect_timeout does.
      def final?(error)
        error.is_a?(IO::TimeoutError) && !error.message.include?("(2) for ")
      end

      # @return [Exception]
      def timed_out = resolution_timed_out

      # Ruby 3.3 raises the error of the system.
      def connect_timed_out = RubyFeatures::ADDRESSES_ARE_RACED ? super : failure(Errno::ETIMEDOUT.new)

      # No own address has the family of any address of the host.
      def no_local_address
        Errno::EAFNOSUPPORT.new("bind(2) for #{@local_host.inspect} port #{@local_port}")
      end

      # Called before a socket is bound to an own address.
      def prepare(socket)
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
      end

      private

      def timeouts_of_ruby = RubyFeatures::ADDRESSES_ARE_RACED ? [*super, @resolv_timeout] : super

      def too_late = raise(timed_out)

      def open_socket(address, local, timeout)
        socket = Socket.new(Connect.family_of(address), :STREAM)
        socket.bind(Addrinfo.new(local)) if local && prepare(socket)
        connected = socket.connect_nonblock(address, exception: false) == 0 || socket.wait_writable(timeout)
        raise timed_out unless connected

        error = socket.getsockopt(:SOCKET, :ERROR).int
        raise SystemCallError.new("connect(2)", error) unless error.zero?

        opened = socket
      ensure
        socket&.close unless opened
      end
    end
  end
end
