# frozen_string_literal: true

module Bench
  # What tasks that compute, and never wait, do to one that waits.
  module Slices
    COMPUTING = 4
    TICK = 0.001

    class << self
      # A task that wants to run each millisecond, until the others have ended.
      # @return [Array(Array<Float>, Integer)] by how many microseconds each tick was late, sorted; and the number of
      #   the others that have ended
      def tick(peer, work)
        late = []
        ended = 0
        peer.run do
          peer.spawn do
            until ended == COMPUTING
              due = now + TICK
              sleep(TICK)
              late << ((now - due) * 1e6)
            end
          end
          COMPUTING.times { peer.spawn { work.times { fib(20) } && ended += 1 } }
        end
        [late.sort, ended]
      end

      private

      # A tenth of a millisecond with YJIT.
      def fib(number) = number < 2 ? number : fib(number - 1) + fib(number - 2)

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    Bench.group("slices", "Beside tasks that compute", rounds: 3, peers: %w[heddle-sliced heddle threads async itsi],
                                                       note: "heddle-sliced has time slices of 5 ms.") do
      Bench.row("compute", "delay of a 1 ms timer beside #{COMPUTING} tasks that compute, median",
                unit: "tick", operations: 4000, figure: :p50, fixed: true,
                also: { p99: ["the same, 99th percentile", "tick"], max: ["the same, maximum", "tick"] },
                expect: ->(_) { [true, COMPUTING] }) do |peer, n|
        late, ended = tick(peer, n)
        peer.found.merge!(p50: late[late.size / 2], p99: late[late.size * 99 / 100], max: late.last)
        [late.any?, ended]
      end
    end
  end
end
