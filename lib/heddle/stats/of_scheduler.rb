# frozen_string_literal: true

require_relative "latency"

module Heddle
  using Internal

  class Stats
    # The amount of work that one scheduler has to do, and has done so far.
    #
    # @!attribute [r] thread
    #   @return [Thread] the thread on which it runs
    # @!attribute [r] backend
    #   @return [String] "uring", "epoll", "kqueue" or "poll"
    # @!attribute [r] tasks
    #   @return [Hash{Symbol => Integer}] how many tasks and fibers are in each state now: see {Stats}
    # @!attribute [r] started
    #   @return [Integer] how many tasks and fibers were started so far
    # @!attribute [r] loop_latency
    #   @return [Heddle::Stats::Latency] how long events have waited until their tasks ran
    # @!attribute [r] polls
    #   @return [Integer] how often the loop has asked the kernel for events so far
    # @!attribute [r] timers
    #   @return [Integer] how many deadlines are set now
    # @!attribute [r] closes
    #   @return [Integer] how many IOs its tasks have closed so far
    # @!attribute [r] cancels
    #   @return [Integer] how many cancels were sent to its tasks so far
    OfScheduler = Data.define(:thread, :backend, :tasks, :started, :loop_latency, :polls, :timers, :closes,
                              :cancels) do
      class << self
        # @private
        # @return [OfScheduler]
        def of(scheduler)
          with_counted(scheduler.counted, thread: scheduler.thread, backend: scheduler.backend,
                                          tasks: scheduler.states.freeze, timers: scheduler.counts[:timers])
        end

        # @private
        # @return [OfScheduler] the figures of all schedulers that have ended
        def ended
          with_counted(Scheduler.ended_counted, thread: nil, backend: nil, tasks: self::NO_TASKS, timers: 0)
        end

        # @private
        # @param all [Array<OfScheduler>]
        # @return [Hash{Symbol => Object}] each of the figures
        def sums(all)
          { tasks: all.map(&:tasks).reduce { |one, other| one.merge(other) { |_, a, b| a + b } }.freeze,
            loop_latency: all.map(&:loop_latency).reduce(:+),
            **%i[started polls timers closes cancels].to_h { |name| [name, all.sum(&name)] } }
        end

        private

        def with_counted(counted, **others)
          latency = Latency.new(*counted.values_at(:latency_counts, :latency_sum, :latency_max))
          new(**others, **counted.slice(:started, :polls, :closes, :cancels), loop_latency: latency)
        end
      end
    end

    # @private
    OfScheduler::NO_TASKS = { running: 0, ready: 0, io: 0, sleep: 0, blocked: 0, process: 0, worker: 0 }.freeze
  end
end
