# frozen_string_literal: true

# The workloads of carbon_fiber's benchmarks/, with Heddle as one more target:
#
#   bin/ruby bench/others/carbon_fiber.rb --source FOLDER
#
# FOLDER is a checkout of carbon_fiber. Its workloads run unchanged, as its own bench_one runs them; what they report
# (operations per second, by their own clock) is turned into microseconds for an operation.

require_relative "command"

module Bench
  # Rows made of carbon_fiber's workloads.
  module CarbonFiberSuite
    GROUP = "carbon_fiber_suite"
    # UringMachine is left out: the workloads call Fiber.scheduler.run.
    PEERS = %w[heddle-uring heddle-epoll carbon_fiber async itsi].freeze
    NOTE = "\"own\" is wall time, by the clock of the workload."

    class << self
      def define
        require Others.path("benchmarks", "lib", "bench")
        Bench.group(GROUP, "carbon_fiber's own workloads", peers: PEERS, note: NOTE, setup: Others.method(:setup)) do
          WORKLOADS.each { |name, workload| row(name, workload) }
        end
      end

      private

      def row(name, workload)
        operations = workload[:defaults].values_at(:concurrency, :iterations).inject(:*)
        Bench.row("carbon_#{name}", name, unit: workload[:unit][%r{\A[^/]+}], operations:, fixed: true, figure: :own,
                                          warm_up: false, expect: ->(_) { true }) do |peer, n|
          options = workload[:defaults].merge(iterations: [n / workload[:defaults][:concurrency], 1].max)
          result = nil
          peer.measure { result = call(peer, name, options) }
          rate = result.fetch(workload[:metric])
          peer.found[:own] = 1e6 / rate
          rate.positive?
        end
      end

      # In a thread of its own, which has that scheduler.
      def call(peer, name, options)
        require Others.path("benchmarks", "lib", "bench", "workloads", name)
        scheduler = peer.make_scheduler
        Fiber.set_scheduler(scheduler)
        Thread.handle_interrupt(Errno::EINTR => :never) do
          Workloads.const_get(Bench.classify(name)).new.call(scheduler, options)
        end
      end
    end

    define if ENV[Others::SOURCE]
  end
end

if $PROGRAM_NAME == __FILE__
  Bench::Others.run("bench/others/carbon_fiber.rb", Bench::CarbonFiberSuite::GROUP, ARGV) do
    Bench::CarbonFiberSuite.define
  end
end
