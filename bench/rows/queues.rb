# frozen_string_literal: true

# Rows about Queue and Mutex.

Bench.row(
  "queue", "Queue ping-pong, one thread",
  unit: "round trip", operations: 60_000,
  expect: ->(n) { n * (n - 1) / 2 }
) do |peer, n|
  ping = Queue.new
  pong = Queue.new
  sum = 0
  peer.run do
    peer.spawn { n.times { pong << ping.pop } }
    n.times do |i|
      ping << i
      sum += pong.pop
    end
  end
  sum
end

# Two threads, each with a scheduler of its own (for the peer "threads": just two threads).
Bench.row(
  "queue_threads", "Queue ping-pong, across threads",
  unit: "round trip", operations: 20_000,
  expect: ->(n) { n * (n - 1) / 2 }
) do |peer, n|
  ping = Queue.new
  pong = Queue.new
  sum = 0
  peer.run do
    other = peer.thread { n.times { pong << ping.pop } }
    n.times do |i|
      ping << i
      sum += pong.pop
    end
    other.join
  end
  sum
end

Bench.row(
  "queue_timeout", "Queue#pop(timeout:) ping-pong",
  unit: "round trip", operations: 60_000,
  expect: ->(n) { n * (n - 1) / 2 }
) do |peer, n|
  ping = Queue.new
  pong = Queue.new
  sum = 0
  peer.run do
    peer.spawn { n.times { pong << ping.pop(timeout: 20) } }
    n.times do |i|
      ping << i
      sum += pong.pop(timeout: 20)
    end
  end
  sum
end

# The holder gives way inside, so that everybody else has to wait for the lock.
Bench.row(
  "mutex", "contended Mutex, 50 tasks",
  unit: "lock", operations: 50_000, multiple: 50,
  expect: ->(n) { [n, 0] }
) do |peer, n|
  mutex = Mutex.new
  counter = 0
  overlaps = 0
  inside = false
  peer.run do
    50.times do
      peer.spawn do
        (n / 50).times do
          mutex.synchronize do
            overlaps += 1 if inside
            inside = true
            sleep(0)
            counter += 1
            inside = false
          end
        end
      end
    end
  end
  [counter, overlaps]
end
