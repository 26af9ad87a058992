# frozen_string_literal: true

# Rows about closing an IO that somebody waits on: the cost has to depend on who waits on it, and on nobody else.

# A pipe takes two descriptors: 10,000 of them, or what the hard limit allows.
most = [10_000, (Process.getrlimit(:NOFILE).last - 200) / 2].min

# N pipes with a reader parked on each (Ruby Bug #18455), from the first close to the end of the last reader.
[10, 100, 1000, most].each do |pairs|
  Bench.row(
    "close_#{pairs}", "close #{pairs} pipes that are read",
    unit: "pair", operations: [pairs, 2000].max, multiple: pairs > 1000 ? 1 : pairs, fixed: pairs > 1000,
    expect: ->(n) { n }
  ) do |peer, n|
    begun = Thread::Queue.new
    closed = Thread::Queue.new
    peer.run do
      group = [pairs, n].min
      (n / group).times do
        pipes = Array.new(group) { IO.pipe }
        pipes.each do |reader, _|
          peer.spawn do
            begun << true
            reader.read(1)
          rescue IOError => e
            closed << e
          end
        end
        group.times { begun.pop } # with some schedulers a task begins late, after a sleep of its starter
        sleep(0.005) # until they wait
        seen = closed.size
        peer.measure do
          pipes.flatten.each(&:close)
          sleep(0) until closed.size == seen + group
        end
      end
    end
    closed.size
  end
end

# Tasks that wait elsewhere must not slow it (Ruby Feature #9632).
{ "open_close" => 0, "open_close_parked" => 10_000 }.each do |name, most_waiters|
  Bench.row(
    name, "open and close a pipe#{", 10,000 tasks wait elsewhere" if most_waiters > 0}",
    unit: "pipe", operations: 100_000,
    expect: ->(n) { [n, [most_waiters, n].min] }
  ) do |peer, n|
    waiters = [most_waiters, n].min
    opened = 0
    woken = Thread::Queue.new
    peer.run do
      elsewhere = Array.new(100) { IO.pipe }
      waiters.times do |i|
        peer.spawn do
          elsewhere[i % 100].first.wait_readable
          woken << true
        end
      end
      sleep(0.005)
      peer.measure do
        n.times do
          IO.pipe.each(&:close)
          opened += 1
        end
      end
      elsewhere.each { |_, writer| writer.close }
    end
    [opened, woken.size]
  end
end
