# frozen_string_literal: true

# The other side of the row "idle": opens connections to a port of this machine, and then pings one after another, each
# time another connection, and waits for the answer. A plain program without a scheduler, the same for every peer.
#
# usage: ping_client.rb PORT CONNECTIONS
# Reads a number of pings from stdin, and answers with one line of JSON: the right answers, and the time that a ping
# takes in microseconds: p50, p99, max. At the end of stdin it closes the connections and ends.

require "json"
require "socket"

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
port, connections = ARGV.map { |text| Integer(text) }
# An address has fewer than 30,000 ports, so there are several. The kernel chooses the port when the socket connects:
# only then may it be one that has just been used for another connection.
BIND_ADDRESS_NO_PORT = 24
sockets = Array.new(connections) do |number|
  Socket.new(:INET, :STREAM).tap do |socket|
    socket.setsockopt(:TCP, :NODELAY, 1)
    socket.setsockopt(:IP, BIND_ADDRESS_NO_PORT, 1)
    socket.bind(Addrinfo.tcp("127.0.0.#{1 + (number / 20_000)}", 0))
    socket.connect(Addrinfo.tcp("127.0.0.1", port))
  end
end
$stdout.sync = true
puts("connected")

now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_microsecond) }
while (order = $stdin.gets)
  right = 0
  times = Array.new(Integer(order)) do |number|
    socket = sockets[number * 7919 % sockets.size] # a prime, so that neighbours do not follow each other
    text = format("%08d", number)
    started = now.call
    socket.syswrite(text)
    right += 1 if socket.sysread(8) == text
    now.call - started
  end.sort
  puts(JSON.generate(right:, p50: times[times.size / 2], p99: times[times.size * 99 / 100], max: times.last))
end
