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
sockets = Array.new(connections) do
  Socket.tcp("127.0.0.1", port).tap { |socket| socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
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
