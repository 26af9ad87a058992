# frozen_string_literal: true

require "socket"

module TestSupport
  module FreePort
    # Below the ports that the kernel gives to clients, and to servers that take any (ip_local_port_range): nobody else
    # gets it by chance while a server starts.
    PORTS = (10_000...32_768)

    # By port, the descriptor that keeps other test processes from choosing it. No IO belongs to it: some tests close
    # every socket that they find.
    RESERVED = {} # rubocop:disable Style/MutableConstant
    # Of Linux.
    F_DUPFD_CLOEXEC = 1030
    private_constant :RESERVED, :F_DUPFD_CLOEXEC

    # (minitest has given all test processes the same random numbers.)
    # @return [Integer] a TCP port of 127.0.0.1 on which nothing listens, and that this process alone has been given
    def free_port
      port = Random.new.rand(PORTS)
      RESERVED[port] ||= FreePort.reserve(port)
      TCPServer.open("127.0.0.1", port) { port }
    rescue Errno::EADDRINUSE
      retry
    end

    # @return [Boolean] is this a descriptor that keeps a port for this process?
    def self.keeps?(descriptor) = RESERVED.value?(descriptor)

    # A server may take long until it listens. The name that is bound here shows meanwhile that the port is taken. It
    # belongs to no file, and is gone when the process is.
    # @raise [Errno::EADDRINUSE] it has been given to another process
    def self.reserve(port)
      return true unless RUBY_PLATFORM.include?("linux") # unix(7), "abstract"

      socket = Socket.new(:UNIX, :STREAM)
      socket.bind(Addrinfo.unix("\0heddle-test-port-#{port}"))
      socket.fcntl(F_DUPFD_CLOEXEC, 0)
    ensure
      socket&.close
    end
  end
end
