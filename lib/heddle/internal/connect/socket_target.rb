# frozen_string_literal: true

module Heddle
  module Connect
    # The target of Socket.tcp. Its messages name the address that failed.
    class SocketTarget < Target
      # @param block [Proc, nil] is called with the socket, which is closed afterwards
      # @yield connects to one address, with the arguments of Ruby's own Socket.tcp and this block
      # @return [Socket, Object] the value of the block
      def open(block)
        found = find
        return yield(*found, connect_timeout: attempt_timeout) if found.is_a?(Array)

        socket = Race.new(self, found).run
        return socket unless block

        begin
          block.call(socket)
        ensure
          socket.close
        end
      end

      # @return [Socket] connected
      def connect(address, local, timeout)
        remote = addrinfo(address)
        local ? remote.connect_from(addrinfo(local), timeout:) : remote.connect(timeout:)
      end

      # Returns Ruby's error for a failure at one of the addresses.
      def failure(error, address)
        return error unless error.message.end_with?("connect(2)")

        SystemCallError.new("connect(2) for #{addrinfo(address).inspect_sockaddr}", error.errno)
      end

      # Does the error end all attempts, not only this one?
      def final?(error) = error.is_a?(IO::TimeoutError)

      # @return [Exception]
      def timed_out = timeout_error("#{@host}:#{@port}")

      # No own address has the family of any address of the host.
      def no_local_address = SocketError.new("no appropriate local address")

      # Called before a socket is bound to an own address.
      def prepare(_socket) = true

      private

      # Ruby's own method goes on to the next address, without giving it time.
      def too_late = 0

      def addrinfo(address)
        Addrinfo.new(address, Connect.family_of(address), :STREAM, Socket::IPPROTO_TCP)
      end
    end
  end
end
