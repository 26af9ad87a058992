# frozen_string_literal: true

require "socket"
require "tempfile"
require "timeout"

module Bench
  # A guard against regressions: what operations cost in Heddle's tasks. bench/guard.rb counts it, which is the same on
  # every machine, and bin/test does so. On a quiet machine bench/run.rb measures the times as well, as multiples of
  # what plain Ruby takes for the same calls in the same run (bare fibers, and IO that never has to wait).
  module Guard
    # The counts for one operation, by the backend or the Ruby where they differ. If you make something cheaper, lower
    # its counts: `bin/ruby bench/guard.rb` prints those of today. Polls, and the system calls of "file" and "close",
    # depend on what is ready first: here are the highest ones.
    COUNTS = {
      spawn: { objects: 3, calls: 10, switches: 2, polls: 0, system_calls: 0 },
      switch: { objects: 0, calls: 5, switches: 1, polls: 0, system_calls: 0 },
      sleepers: { objects: 3, calls: 11, switches: 4, polls: 0.1, system_calls: 0 },
      queue: { objects: 0, calls: 16, switches: 2, polls: 0, system_calls: 0 },
      mutex: { objects: 0, calls: 8.8, switches: 1.8, polls: 0, system_calls: 0 },
      timeout: { objects: 0, calls: 12, switches: 0, polls: 0, system_calls: 0 },
      socketpair: { objects: 2, calls: 14, switches: 2, polls: 2, system_calls: { "uring" => 4, "epoll" => 8 } },
      gets: { objects: 2, calls: 14, switches: 2, polls: 2, system_calls: { "uring" => 4, "epoll" => 8 } },
      recv: { objects: 2, calls: 10, switches: 2, polls: 2, system_calls: { "uring" => 6, "epoll" => 8 } },
      reads: { objects: 2, calls: 11.1, switches: 1.1, polls: 0.3, system_calls: { "uring" => 0.7, "epoll" => 3.4 } },
      pipes: { objects: 1, calls: 12, switches: 0.4, polls: 0.2, system_calls: 2.2 },
      accept: { objects: { "3.3" => 8, "3.4" => 13, "4.0" => 7 }, calls: { "3.3" => 30, "3.4" => 37, "4.0" => 32 },
                switches: 2, polls: 2.5, system_calls: { "uring" => 14.2, "epoll" => 17.2 } },
      echo: { objects: 2, calls: 14, switches: 2, polls: 0.3, system_calls: { "uring" => 2.2, "epoll" => 6.4 } },
      pipe: { objects: 1, calls: 11, switches: 2, polls: 2, system_calls: { "uring" => 5, "epoll" => 7 } },
      select: { objects: 7, calls: { "3.3" => 10, "3.4" => 9, "4.0" => 9 }, switches: 0, polls: 0, system_calls: 1 },
      close: { objects: { "3.3" => 10, "3.4" => 13, "4.0" => 10 }, calls: { "3.3" => 23, "3.4" => 27, "4.0" => 25 },
               switches: 4, polls: 0.6, system_calls: { "uring" => 9, "epoll" => 10.6 } },
      file: { objects: { "3.3" => 11, "3.4" => 32, "4.0" => 29 }, calls: { "3.3" => 30, "3.4" => 264, "4.0" => 265 },
              switches: 0, polls: { "3.3" => 2, "3.4" => 4, "4.0" => 4 }, system_calls: 10 }
    }.freeze
    # How many tasks read in the row "reads".
    READERS = 400
    # The name of the backend uring with HEDDLE_CALLS=ring, and the counts that differ there.
    SHARED = "ring"
    SHARED_COUNTS = {
      socketpair: { system_calls: 2 },
      gets: { system_calls: 2 },
      recv: { objects: 4, calls: 12, system_calls: 6 },
      echo: { switches: 4, system_calls: 0.4 },
      pipes: { switches: 2, system_calls: 0.2 },
      accept: { polls: 3.4, system_calls: 12.4 },
      close: { system_calls: 10 }
    }.freeze
    # Less than one, so that one more for each operation is seen, and more than the counts differ from run to run.
    ROOM = 0.9

    # How many times plain Ruby each may take: 1.45 times what was measured, by the Ruby where that differs. Who makes
    # something faster lowers its limit: `bin/ruby bench/run.rb --rows guard` says the ratios of today, in brackets.
    LIMITS = {
      spawn: { "3.3" => 1.4, "3.4" => 2.4, "4.0" => 2.25 },
      switch: { "3.3" => 1.06, "3.4" => 1.25, "4.0" => 1.1 },
      sleepers: { "3.3" => 1.5, "3.4" => 1.9, "4.0" => 2.5 },
      queue: 7.8,
      mutex: { "3.3" => 4.2, "3.4" => 4.9, "4.0" => 5.3 },
      timeout: 0.21,
      socketpair: 2.05,
      gets: 2.05,
      recv: 2.05,
      pipes: 2.05,
      reads: 2.05,
      accept: 2.05,
      echo: 1.6,
      pipe: 1.6,
      select: { "3.3" => 0.87, "3.4" => 0.97, "4.0" => 1.04 },
      close: { "3.3" => 1.6, "3.4" => 1.75, "4.0" => 1.95 },
      file: { "3.3" => 1.8, "3.4" => 1.95, "4.0" => 2.6 }
    }.freeze

    class << self
      # @param plain [Proc] the work in plain Ruby, given the number of operations
      # @yield [peer, number] the same in tasks
      # (Each returns how many operations went right.)
      def row(name, title, operations, plain:, multiple: 1, &tasks)
        Bench.row("guard_#{name}", title, unit: "operation", operations:, multiple:,
                                          goal: { "heddle" => limit(name.to_sym) }, expect: ->(n) { n }) do |peer, n|
          right = nil
          peer.measure { peer.run { right = peer.is_a?(PlainAdapter) ? plain.call(n) : tasks.call(peer, n) } }
          right.respond_to?(:call) ? right.call : right
        end
      end

      def rows = Bench.rows.values.select { |row| row.group.name == "guard" }

      def names = rows.map { |row| row.name.delete_prefix("guard_") }

      # @param name [Symbol] what is counted
      # @return [Float] the highest number for an operation
      def most(row, name, backend)
        count = SHARED_COUNTS.dig(row.to_sym, name) if backend == SHARED
        count ||= COUNTS.fetch(row.to_sym).fetch(name)
        count = count.fetch(backend == SHARED ? "uring" : backend) { of_this_ruby(count) } if count.is_a?(Hash)
        count + ROOM
      end

      def limit(name)
        limits = LIMITS.fetch(name)
        limits.is_a?(Hash) ? of_this_ruby(limits) : limits
      end

      # For a Ruby that is not in the list: the highest one.
      def of_this_ruby(limits) = limits.fetch(RUBY_VERSION[/\A\d+\.\d+/]) { limits.values.max }

      # Fibers that take turns.
      def in_turns(number, times)
        count = 0
        fibers = Array.new(number) do
          Fiber.new do
            times.times do
              Fiber.yield
              count += 1
            end
          end
        end
        (times + 1).times { fibers.each(&:resume) }
        count
      end

      # Calls the block on both ends of this number of pairs, one after the other.
      def back_and_forth(pairs, times, message)
        same = 0
        times.times do
          pairs.each do |near, far|
            near.write(message)
            far.write(yield(far))
            same += 1 if yield(near) == message
          end
        end
        same
      ensure
        pairs.flatten.each(&:close)
      end

      # Calls it in a task for each end.
      def ping_pong(peer, pairs, times, message)
        same = 0
        pairs.each do |near, far|
          peer.spawn do
            times.times { far.write(yield(far)) }
            far.close
          end
          peer.spawn do
            times.times do
              near.write(message)
              same += 1 if yield(near) == message
            end
            near.close
          end
        end
        -> { same }
      end

      # A pair of rows' work: each end reads with the block.
      def exchange(name, title, operations, message, pairs: 1, connect: -> { UNIXSocket.pair }, &read)
        alone = ->(n) { back_and_forth(Array.new(pairs) { connect.call }, n / pairs, message, &read) }
        row(name, title, operations, multiple: pairs, plain: alone) do |peer, n|
          ping_pong(peer, Array.new(pairs) { connect.call }, n / pairs, message, &read)
        end
      end

      def tcp_pair
        server = TCPServer.new("127.0.0.1", 0)
        [TCPSocket.new("127.0.0.1", server.addr[1]), server.accept]
      ensure
        server.close
      end
    end

    # Each process does all rows, by turns with the others: the fastest turn counts.
    Bench.group("guard", "Heddle beside plain Ruby", peers: %w[plain heddle-uring heddle-epoll], rounds: 12,
                                                     share: true, keep: true, best: true) do
      fibers = lambda do |n|
        ran = 0
        n.times { Fiber.new { ran += 1 }.resume }
        ran
      end
      row("spawn", "start and end a task", 2_000, plain: fibers) do |peer, n|
        ran = 0
        n.times { peer.spawn { ran += 1 } }
        ran
      end

      row("switch", "sleep(0), 20 tasks", 400_000, multiple: 20, plain: ->(n) { in_turns(20, n / 20) }) do |peer, n|
        count = 0
        20.times do
          peer.spawn do
            (n / 20).times do
              sleep(0)
              count += 1
            end
          end
        end
        -> { count }
      end

      row("sleepers", "tasks that sleep", 1_000, plain: ->(n) { in_turns(n, 1) }) do |peer, n|
        count = 0
        n.times do
          peer.spawn do
            sleep(0.01)
            count += 1
          end
        end
        -> { count }
      end

      queued = lambda do |n|
        ping, pong = Array.new(2) { Thread::Queue.new }
        other = Fiber.new { n.times { (pong << ping.pop) && Fiber.yield } }
        Array.new(n) { |i| (ping << i) && other.resume && pong.pop }.size
      end
      row("queue", "Queue, there and back", 10_000, plain: queued) do |peer, n|
        ping, pong = Array.new(2) { Thread::Queue.new }
        peer.spawn { n.times { pong << ping.pop } }
        Array.new(n) { |i| (ping << i) && pong.pop }.size
      end

      # The holder gives way inside, so that everybody else has to wait for the lock.
      row("mutex", "a contended Mutex", 10_000, multiple: 10, plain: ->(n) { in_turns(10, n / 10) }) do |peer, n|
        lock = Thread::Mutex.new
        count = 0
        10.times do
          peer.spawn do
            (n / 10).times do
              lock.synchronize do
                sleep(0)
                count += 1
              end
            end
          end
        end
        -> { count }
      end

      limited = ->(n) { Array.new(n) { |i| Timeout.timeout(60) { i } }.size }
      row("timeout", "Timeout.timeout", 2_000, plain: limited) { |_, n| limited.call(n) }

      exchange("socketpair", "socket pair, 64 bytes there and back", 2_000, "m" * 64) { |io| io.readpartial(64) }
      exchange("gets", "socket pair, lines there and back", 2_000, "#{"text " * 12}\n", &:gets)
      exchange("echo", "TCP, 512 bytes there and back, 10 connections", 2_000, "m" * 512,
               pairs: 10, connect: -> { tcp_pair }) { |io| io.readpartial(512) }

      message = "m" * 64
      # More tasks than the ring has buffers, all of which can read when it looks the next time.
      in_order = lambda do |n|
        pairs = Array.new(READERS) { UNIXSocket.pair }
        Array.new(n / READERS) { pairs.count { |near, far| near.write("x") && far.readpartial(1) == "x" } }.sum
      ensure
        pairs.flatten.each(&:close)
      end
      at_once = { multiple: READERS, plain: in_order }
      row("reads", "#{READERS} reads that can go on at once", 20 * READERS, **at_once) do |peer, n|
        pairs = Array.new(READERS) { UNIXSocket.pair }
        read = Thread::Queue.new
        pairs.each { |_, far| peer.spawn { (n / READERS).times { read << far.readpartial(1) } } }
        same = Array.new(n / READERS) do
          Fiber.blocking { pairs.each { |near, _| near.write("x") } } # nobody reads meanwhile
          pairs.count { read.pop == "x" }
        end
        pairs.flatten.each(&:close)
        same.sum
      end

      answered = lambda do |n|
        near, far = UNIXSocket.pair
        Array.new(n) { near.send(message, 0) && far.send(far.recv(64), 0) && near.recv(64) }.count(message)
      ensure
        [near, far].each(&:close)
      end
      row("recv", "socket pair, send and recv of 64 bytes", 2_000, plain: answered) do |peer, n|
        near, far = UNIXSocket.pair
        peer.spawn { n.times { far.send(far.recv(64), 0) } && far.close }
        Array.new(n) { near.send(message, 0) && near.recv(64) }.tap { near.close }.count(message)
      end

      small = "x" * 1024
      one_by_one = lambda do |n|
        pipes = Array.new(10) { IO.pipe }
        bytes = Array.new(n / 10) do
          pipes.sum { |reader, writer| writer.write(small) && reader.readpartial(1024).size }
        end
        bytes.sum / 1024
      ensure
        pipes.flatten.each(&:close)
      end
      row("pipes", "1 KiB through each of 10 pipes", 2_000, multiple: 10, plain: one_by_one) do |peer, n|
        got = 0
        Array.new(10) { IO.pipe }.each do |reader, writer|
          peer.spawn { (n / 10).times { writer.write(small) } && writer.close }
          peer.spawn do
            (n / 10).times { reader.readpartial(1024).size.tap { |size| got += size } }
            reader.close
          end
        end
        -> { got / 1024 }
      end

      accepted = lambda do |n|
        server = TCPServer.new("127.0.0.1", 0)
        Array.new(n) do
          client = TCPSocket.new("127.0.0.1", server.addr[1])
          server.accept.close
          client.read(1).tap { client.close }
        end.count(&:nil?)
      ensure
        server.close
      end
      row("accept", "accept, connect, close", 300, plain: accepted) do |peer, n|
        server = TCPServer.new("127.0.0.1", 0)
        peer.spawn { n.times { server.accept.close } && server.close }
        Array.new(n) do
          client = TCPSocket.new("127.0.0.1", server.addr[1])
          client.read(1).tap { client.close }
        end.count(&:nil?)
      end

      chunk = "x" * 65_536
      through = lambda do |n|
        IO.pipe do |reader, writer|
          Array.new(n) { writer.write(chunk) && reader.read(chunk.size) }.count { |got| got.size == chunk.size }
        end
      end
      row("pipe", "64 KiB through a pipe", 500, plain: through) do |peer, n|
        reader, writer = IO.pipe
        peer.spawn { n.times { writer.write(chunk) } }
        Array.new(n) { reader.read(chunk.size) }.count { |got| got.size == chunk.size }
      ensure
        [reader, writer].each(&:close)
      end

      # One of two pipes can be read.
      ready = lambda do |n|
        pipes = Array.new(2) { IO.pipe }
        pipes.last.last.write("x")
        Array.new(n) { IO.select(pipes.map(&:first)) }.count { |found, *| found == [pipes.last.first] }
      ensure
        pipes.flatten.each(&:close)
      end
      row("select", "IO.select", 2_000, plain: ready) { |_, n| ready.call(n) }

      refused = lambda do |n|
        Array.new(n) do
          fiber = Fiber.new { Fiber.yield }.tap(&:resume)
          IO.pipe.each(&:close)
          fiber.raise(IOError)
        rescue IOError
          1
        end.sum
      end
      row("close", "close a pipe that is read", 300, plain: refused) do |peer, n|
        closed = 0
        n.times do
          reader, writer = IO.pipe
          peer.spawn do
            reader.readpartial(1)
          rescue IOError
            closed += 1
          end
          [reader, writer].each(&:close)
        end
        -> { closed }
      end

      file = nil
      read = lambda do |n|
        file ||= Tempfile.create("heddle-bench").tap { |one| one.write(chunk) && one.flush && File.unlink(one.path) }
        Array.new(n) { File.read("/proc/self/fd/#{file.fileno}") }.count { |text| text.size == chunk.size }
      end
      row("file", "read a file of 64 KiB", 300, plain: read) { |_, n| read.call(n) }
    end
  end
end
