# frozen_string_literal: true

# Rows about TCP and UDP, over the loopback device.

require "socket"

# Client and server tasks share one thread. Peers "c" and "c-uring" do the same work without Ruby: see
# bench/c/.
Bench.row(
  "echo", "TCP echo, 20 connections, 512 bytes",
  unit: "round trip", operations: 40_000, multiple: 20,
  expect: ->(n) { [n / 20] * 20 }
) do |peer, n|
  server = TCPServer.new("127.0.0.1", 0)
  port = server.addr[1]
  message = "m" * 512
  same = [0] * 20
  peer.run do
    peer.spawn do
      20.times do
        socket = server.accept
        peer.spawn do
          buffer = String.new(capacity: 512)
          loop { socket.write(socket.readpartial(512, buffer)) }
        rescue EOFError
          socket.close
        end
      end
      server.close
    end
    20.times do |i|
      peer.spawn do
        socket = TCPSocket.new("127.0.0.1", port)
        buffer = String.new(capacity: 512)
        (n / 20).times do
          socket.write(message)
          same[i] += 1 if socket.readpartial(512, buffer) == message
        end
        socket.close
      end
    end
  end
  same
end

Bench.row(
  "accept", "accept, connect, close",
  unit: "connection", operations: 5_000,
  expect: ->(n) { [n, n] }
) do |peer, n|
  server = TCPServer.new("127.0.0.1", 0)
  port = server.addr[1]
  accepted = 0
  ended = 0
  peer.run do
    peer.spawn do
      n.times do
        server.accept.close
        accepted += 1
      end
      server.close
    end
    n.times do
      socket = TCPSocket.new("127.0.0.1", port)
      ended += 1 if socket.read(1).nil?
      socket.close
    end
  end
  [accepted, ended]
end

Bench.row(
  "udp", "UDP ping-pong, 64 bytes",
  unit: "round trip", operations: 40_000,
  expect: ->(n) { n }
) do |peer, n|
  near, far = Array.new(2) { UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) } }
  near.connect("127.0.0.1", far.addr[1])
  far.connect("127.0.0.1", near.addr[1])
  message = "m" * 64
  same = 0
  peer.run do
    peer.spawn do
      n.times { far.send(far.recv(64), 0) }
      far.close
    end
    n.times do
      near.send(message, 0)
      same += 1 if near.recv(64) == message
    end
    near.close
  end
  same
end
