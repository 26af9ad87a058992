# frozen_string_literal: true

require_relative "fiber_pools"

module Bench
  # What `heddle demo` measures, on every peer: 1,000 requests at once, each an unchanged Net::HTTP.start with a
  # connection of its own, to the demo's server, which answers after a while. The server is a process of its own and
  # computes for about half as long as the client.
  module MainJob
    REQUESTS = 1000
    PEERS = %w[heddle-uring heddle-epoll heddle-accelerated threads async carbon_fiber uringmachine itsi].freeze
    # Milliseconds.
    DELAYS = [0, 10, 50, 100, 500].freeze

    class << self
      # @return [Integer] how many answers were right
      def get_all(peer, delay_ms, requests)
        target = Heddle::CLI::Demo::Target.own(ENV.fetch("BENCH_DEMO_PORT"))
        right = 0
        peer.run do
          requests.times do |number|
            peer.spawn { right += 1 unless target.mistake(target.get(delay_ms, number), delay_ms, number) }
          end
        end
        right
      end
    end

    options = { rounds: 9, figures: %i[wall cpu], peers: PEERS, setup: FiberPools.method(:start) }
    Bench.group("main_job", "1,000 GETs at once, each with a connection of its own", **options) do
      of_rows = { unit: "request", operations: REQUESTS, fixed: true, expect: ->(n) { n } }
      DELAYS.each do |delay_ms|
        Bench.row("main_job_#{delay_ms}", "each answered after #{delay_ms} ms", **of_rows) do |peer, n|
          $LOAD_PATH.unshift(FiberPools::LIB) unless $LOAD_PATH.include?(FiberPools::LIB)
          require "heddle/cli/demo/target"
          get_all(peer, delay_ms, n)
        end
      end
    end
  end
end
