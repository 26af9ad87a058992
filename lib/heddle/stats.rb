# frozen_string_literal: true

module Heddle
  using Internal

  # The amount of work that the schedulers of a process have to do, and have done so far: see Heddle.stats.
  #
  # @!attribute [r] tasks
  #   @return [Hash{Symbol => Integer}] how many tasks, and fibers of Fiber.schedule, are in each state now: :running,
  #     :ready (to run), :io (they wait for an IO), :sleep, :blocked (by a lock, a queue, a task, a scope or a thread),
  #     :process (they wait for its end) and :worker (for a file or the address of a name)
  # @!attribute [r] started
  #   @return [Integer] how many tasks and fibers were started so far
  # @!attribute [r] loop_latency
  #   @return [Heddle::Stats::Latency] how long events have waited until their tasks ran
  # @!attribute [r] polls
  #   @return [Integer] how often the loops have asked the kernel for events so far
  # @!attribute [r] timers
  #   @return [Integer] how many deadlines are set now: of sleeps and timeouts
  # @!attribute [r] closes
  #   @return [Integer] how many IOs tasks have closed so far
  # @!attribute [r] cancels
  #   @return [Integer] how many cancels were sent to tasks so far: by Task#cancel, by scopes, and by a race
  # @!attribute [r] workers
  #   @return [Hash{Symbol => Integer}] the :threads of the process that look up names and transfer files, and how many
  #     jobs are :queued for one
  # @!attribute [r] pool
  #   @return [Hash{Symbol => Integer}] the Ruby :threads for Heddle.offload and for calls of Ruby that would block, and
  #     how many such calls are :queued for one
  # @!attribute [r] schedulers
  #   @return [Array<Heddle::Stats::OfScheduler>] the schedulers that run now, one for each thread
  Stats = Data.define(:tasks, :started, :loop_latency, :polls, :timers, :closes, :cancels, :workers, :pool,
                      :schedulers) do
    # @private
    # @return [Heddle::Stats]
    def self.now
      schedulers = Dump.running.map { |one| self::OfScheduler.of(one) }
      workers, pool = [Scheduler.workers, Scheduler.pool_counts].map do |threads, queued|
        { threads:, queued: }.freeze
      end
      new(**self::OfScheduler.sums([*schedulers, self::OfScheduler.ended]), workers:, pool:, schedulers:)
    end
  end
end

require_relative "stats/of_scheduler"
