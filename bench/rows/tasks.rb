# frozen_string_literal: true

# Rows about tasks alone: no input or output.

Bench.row(
  "spawn", "spawn and exit",
  unit: "task", operations: 40_000,
  expect: ->(n) { n }
) do |peer, n|
  ran = 0
  peer.run { n.times { peer.spawn { ran += 1 } } }
  ran
end

# The first one opens the backend; the others find it.
Bench.row(
  "runs", "a run with one task",
  unit: "run", operations: 10_000,
  expect: ->(n) { n }
) do |peer, n|
  ran = 0
  n.times { peer.run { peer.spawn { ran += 1 } } }
  ran
end

Bench.row(
  "switch", "sleep(0), 20 tasks",
  unit: "switch", operations: 200_000, multiple: 20,
  expect: ->(n) { [n / 20] * 20 }
) do |peer, n|
  counts = [0] * 20
  peer.run do
    20.times do |i|
      peer.spawn do
        (n / 20).times do
          sleep(0)
          counts[i] += 1
        end
      end
    end
  end
  counts
end

# The sum of what came late enough: waking early is a wrong result.
Bench.row(
  "sleepers", "10,000 sleepers",
  unit: "sleeper", operations: 10_000, fixed: true,
  expect: ->(n) { n }
) do |peer, n|
  on_time = [0] * n
  now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  peer.run do
    n.times do |i|
      peer.spawn do
        duration = 0.2 + ((i * 7919) % 1000 / 5000.0)
        started = now.call
        sleep(duration)
        on_time[i] = 1 if now.call - started >= duration
      end
    end
  end
  on_time.sum
end

Bench.row(
  "process", "spawn and wait for a process, 4 at a time",
  unit: "process", operations: 400, multiple: 4, figure: :wall,
  expect: ->(n) { n }
) do |peer, n|
  ended = [0] * 4
  peer.run do
    4.times do |i|
      peer.spawn do
        (n / 4).times do
          pid = Process.spawn("true")
          _, status = Process.wait2(pid)
          ended[i] += 1 if status.pid == pid && status.success?
        end
      end
    end
  end
  ended.sum
end
