# frozen_string_literal: true

require "socket"

module TestSupport
  module FreePort
    # Below the ports that the kernel gives to clients, and to servers that take any (ip_local_port_range): nobody else
    # gets it by chance while a server starts.
    PORTS = (10_000...32_768)

    # (minitest has given all test processes the same random numbers.)
    # @return [Integer] a TCP port of 127.0.0.1 on which nothing listens
    def free_port
      TCPServer.open("127.0.0.1", Random.new.rand(PORTS)) { |server| server.addr[1] }
    rescue Errno::EADDRINUSE
      retry
    end
  end
end
