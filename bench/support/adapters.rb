# frozen_string_literal: true

module Bench
  # CPU time, wall time and allocated objects.
  module Costs
    Cost = Struct.new(:cpu, :wall, :objects)

    def self.now
      Cost.new(Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID),
               Process.clock_gettime(Process::CLOCK_MONOTONIC), GC.stat(:total_allocated_objects))
    end

    # What the block costs.
    def self.of
      before = now
      yield
      Cost.new(*now.to_a.zip(before.to_a).map { |after, earlier| after - earlier })
    end

    # The costs of the parts of a row that count, or nil if all of it does.
    attr_reader :measured

    # How many operations there were, where only the workload knows.
    attr_accessor :done

    # What the workload itself finds: bytes, or microseconds as p50, p99, max.
    # @return [Hash{Symbol=>Numeric}]
    def found = @found ||= {}

    # Only what such blocks do counts.
    def measure(&)
      cost = Costs.of(&)
      @measured = Cost.new(*(@measured || Cost.new(0, 0, 0)).to_a.zip(cost.to_a).map(&:sum))
    end
  end

  # Runs a row under a Fiber::Scheduler, the way its users do without any API of its own.
  class SchedulerAdapter
    include Costs

    # The block makes a scheduler for the current thread.
    def initialize(&make)
      @make = make
    end

    def make_scheduler = @make.call

    # Runs the block as the first task; returns once all tasks have ended.
    def run(&)
      error = nil
      Fiber.set_scheduler(make_scheduler)
      spawn { error = failure_of(&) }
      finish
      raise error if error
    end

    # Starts one task.
    def spawn(&) = Fiber.schedule(&)

    # Starts a second thread, which runs the block as a task of its own scheduler.
    def thread(&) = Thread.new { run(&) }

    private

    def finish = Fiber.set_scheduler(nil)

    def failure_of
      yield
      nil
    rescue StandardError => e
      e
    end
  end

  # One thread per task.
  class ThreadAdapter
    include Costs

    def run
      @threads = []
      yield
      # A task may start others while the first ones are waited for.
      @threads.shift.join until @threads.empty?
    end

    def spawn(&)
      @threads << Thread.new(&)
    end

    def thread(&) = Thread.new(&)
  end

  # No tasks at all: for rows about the one thread that runs them.
  class PlainAdapter
    include Costs

    def run = yield
    def spawn = yield
  end
end
