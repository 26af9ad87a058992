# frozen_string_literal: true

# Rows about pipes, socket pairs and files.

require "socket"
require "tempfile"
require "timeout"

Bench.row(
  "pipe", "pipe transfer, chunks of 64 KiB",
  unit: "chunk", operations: 10_000,
  expect: ->(n) { [n * 65_536, "#{"x" * 9}\n"] }
) do |peer, n|
  reader, writer = IO.pipe(binmode: true)
  chunk = ("#{"x" * 9}\n" * 6554)[-65_536..]
  bytes = 0
  last = nil
  peer.run do
    peer.spawn do
      n.times { writer.write(chunk) }
      writer.close
    end
    buffer = String.new(capacity: 65_536)
    while reader.read(65_536, buffer)
      bytes += buffer.bytesize
      last = buffer.byteslice(-10, 10)
    end
    reader.close
  end
  [bytes, last]
end

Bench.row(
  "gets", "gets, socket pair ping-pong of lines",
  unit: "round trip", operations: 40_000,
  expect: ->(n) { n }
) do |peer, n|
  near, far = UNIXSocket.pair
  line = "#{"a line of text " * 4}\n"
  same = 0
  peer.run do
    peer.spawn do
      while (got = far.gets)
        far.write(got)
      end
      far.close
    end
    n.times do
      near.write(line)
      same += 1 if near.gets == line
    end
    near.close
  end
  same
end

Bench.row(
  "recv", "recv and send, socket pair ping-pong, 64 bytes",
  unit: "round trip", operations: 40_000,
  expect: ->(n) { n }
) do |peer, n|
  near, far = UNIXSocket.pair
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

{
  "socketpair" => "", "socketpair_timeout" => ", with IO#timeout", "socketpair_block" => ", reads in Timeout.timeout"
}.each do |name, title|
  Bench.row(
    name, "socket pair ping-pong, 64 bytes#{title}",
    unit: "round trip", operations: 40_000,
    expect: ->(n) { n }
  ) do |peer, n|
    near, far = UNIXSocket.pair
    [near, far].each { |socket| socket.timeout = 20 } if name == "socketpair_timeout"
    read = lambda do |socket, buffer|
      next socket.readpartial(64, buffer) unless name == "socketpair_block"

      Timeout.timeout(20) { socket.readpartial(64, buffer) }
    end
    message = "m" * 64
    same = 0
    peer.run do
      peer.spawn do
        buffer = String.new(capacity: 64)
        n.times { far.write(read.call(far, buffer)) }
        far.close
      end
      buffer = String.new(capacity: 64)
      n.times do
        near.write(message)
        same += 1 if read.call(near, buffer) == message
      end
      near.close
    end
    same
  end
end

Bench.row(
  "select", "IO.select of two pipes, ping-pong",
  unit: "round trip", operations: 20_000, multiple: 2,
  expect: ->(n) { [n / 2, n / 2] }
) do |peer, n|
  pipes = Array.new(2) { IO.pipe }
  answer, answered = IO.pipe
  readers = pipes.map(&:first)
  counts = [0, 0]
  peer.run do
    peer.spawn do
      n.times do
        ready, = IO.select(readers)
        ready.each { |io| counts[readers.index(io)] += 1 if io.read(1) == "s" }
        answered.write("a")
      end
    end
    n.times do |i|
      pipes[i % 2].last.write("s")
      answer.read(1)
    end
  end
  [*pipes.flatten, answer, answered].each(&:close)
  counts
end

# The file is in the kernel's cache.
Bench.row(
  "file", "open and read a file of 16 KiB",
  unit: "file", operations: 20_000, multiple: 4,
  expect: ->(n) { n }
) do |peer, n|
  content = "0123456789abcdef" * 1024
  right = 0
  Tempfile.create("heddle-bench") do |file|
    file.write(content)
    file.flush
    peer.run do
      4.times { peer.spawn { (n / 4).times { right += 1 if File.read(file.path) == content } } }
    end
  end
  right
end

# Each reader has to see the close of its own pipe, as an IOError, exactly once.
Bench.row(
  "close", "close 2,000 pipes with a parked reader each",
  unit: "pipe", operations: 2_000, fixed: true,
  expect: ->(n) { n }
) do |peer, n|
  readers, writers = Array.new(n) { IO.pipe }.transpose
  errors = [0] * n
  started = Queue.new
  peer.run do
    readers.each_with_index do |reader, i|
      peer.spawn do
        started << i
        reader.read(1)
      rescue IOError
        errors[i] += 1
      end
    end
    n.times { started.pop }
    # Threads announce themselves before they read: let the last ones get there.
    sleep(0.02)
    readers.each(&:close)
  end
  writers.each(&:close)
  errors.sum
end
