# frozen_string_literal: true

require "json"
require "rbconfig"
require "socket"
require_relative "../support/memory"

module Bench
  # Rows about tasks that mostly wait: how soon one runs when its moment has come.
  module Waiting
    CONNECTIONS = [10_000, Process.getrlimit(:NOFILE).last - 200].min
    # As many pings as this come first, and do not count.
    FIRST_PINGS = 2_000
    BUSY_TASKS = 10
    TICK = 0.001
    # How many streams are busy beside the timer.
    STREAMS = [1, 30].freeze

    class << self
      # A server with this number of connections, a task for each, and a client in a process of its own.
      # @param idle [Numeric] for how many seconds nothing happens at first, which is measured, too
      # @return [Hash] what the client says of its pings
      def ping(peer, connections, pings, idle: nil)
        server = TCPServer.new("127.0.0.1", 0)
        server.listen(4096)
        command = [RbConfig.ruby, File.join(ROOT, "support/ping_client.rb"), server.addr[1].to_s, connections.to_s]
        client = IO.popen(command, "r+")
        before = Memory.used
        said = nil
        peer.run do
          connections.times { server.accept.then { |socket| peer.spawn { echo(socket) } } }
          client.gets
          peer.found[:bytes] = Memory.per(connections, before)
          peer.found[:idle] = rest(idle) if idle
          ask(client, [FIRST_PINGS, pings].min)
          peer.measure { said = ask(client, pings) }
          client.close_write # whereupon it closes its connections, and the tasks end
        end
        said
      ensure
        server.close
        client.close
      end

      # A task that wants to run each millisecond beside others that compute, and let others run every now and then.
      # @return [Array<Float>] by how many microseconds each tick was late, sorted
      def tick(peer, ticks)
        late = []
        finished = false
        peer.run do
          BUSY_TASKS.times { peer.spawn { compute until finished } }
          peer.spawn do
            ticks.times do
              due = now + TICK
              sleep(TICK)
              late << ((now - due) * 1e6)
            end
            finished = true
          end
        end
        late.sort
      end

      # The ticks beside tasks that read lines which are always there, from processes that write as fast as they can.
      # @return [Array(Array<Float>, Array<Integer>)] the lateness of the ticks, and how many lines each task has read
      def tick_beside_streams(peer, ticks, count)
        writers, readers = Array.new(count) { feed }.transpose
        late = []
        lines = [0] * count
        finished = false
        peer.run do
          readers.each_with_index do |reader, i|
            peer.spawn { reader.gets && lines[i] += 1 until finished }
          end
          peer.spawn do
            ticks.times do
              due = now + TICK
              sleep(TICK)
              late << ((now - due) * 1e6)
            end
            finished = true
          end
        end
        [late.sort, lines]
      ensure
        writers&.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
        readers&.each(&:close)
      end

      private

      # @return [Array(Integer, IO)] a process, and what it writes
      def feed
        reader, writer = UNIXSocket.pair
        lines = "#{"x" * 63}\n" * 1024
        pid = Process.fork do
          reader.close
          loop { writer.write(lines) }
        rescue SystemCallError
          exit!
        end
        writer.close
        [pid, reader]
      end

      # @return [Float] microseconds of CPU time in each second
      def rest(seconds)
        sleep(0.2)
        Costs.of { sleep(seconds) }.cpu * 1e6 / seconds
      end

      def ask(client, pings)
        client.puts(pings)
        JSON.parse(client.gets, symbolize_names: true)
      end

      def echo(socket)
        buffer = String.new(capacity: 8)
        loop { socket.write(socket.readpartial(8, buffer)) }
      rescue EOFError
        socket.close
      end

      # Some microseconds of work (with YJIT; without it, some ten), then a moment for others.
      def compute
        1000.times { nil }
        sleep(0)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    Bench.group("waiting", "Many that wait") do
      found = { p50: ["the same, median", "ping"], p99: ["the same, 99th percentile", "ping"],
                bytes: ["memory of an idle connection", "connection"] }
      Bench.row("idle", "ping one of #{CONNECTIONS} idle connections",
                unit: "ping", operations: 10_000, warm_up: false, also: found, expect: ->(n) { n }) do |peer, n|
        said = ping(peer, [CONNECTIONS, n * 10].min, n)
        peer.found.merge!(said.slice(:p50, :p99))
        said.fetch(:right)
      end

      Bench.row("ticker", "delay of a 1 ms timer beside #{BUSY_TASKS} busy tasks, median",
                unit: "tick", operations: 500, figure: :p50,
                also: { p99: ["the same, 99th percentile", "tick"], max: ["the same, maximum", "tick"] },
                expect: ->(n) { [n, true] }) do |peer, n|
        late = tick(peer, n)
        peer.found.merge!(p50: late[late.size / 2], p99: late[late.size * 99 / 100], max: late.last)
        [late.size, late.first >= 0]
      end

      STREAMS.each do |count|
        Bench.row("streams#{count}", "delay of a 1 ms timer beside #{count} busy streams, p99",
                  unit: "tick", operations: 500, figure: :p99,
                  also: { max: ["the same, maximum", "tick"] },
                  expect: ->(n) { [n, true] }) do |peer, n|
          late, lines = tick_beside_streams(peer, n, count)
          peer.found.merge!(p99: late[late.size * 99 / 100], max: late.last)
          [late.size, lines.all?(&:positive?)]
        end
      end
    end
  end
end
