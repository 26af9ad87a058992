# frozen_string_literal: true

module Heddle
  using Internal

  # Tells of a task that keeps the loop from turning, while it does: a thread looks now and then. For HEDDLE_STALLS=0.1,
  # the seconds that it may take.
  class Stalls
    THREAD_NAME = "heddle stalls"

    # @param text [String]
    # @return [Float, nil] what HEDDLE_STALLS says
    def self.limit(text)
      return if text.empty?

      limit = Float(text, exception: false)
      return limit if limit&.positive? && limit.finite?

      warn("heddle: HEDDLE_STALLS=#{text} has no effect: it must be a positive number of seconds")
    end

    LIMIT = limit(ENV.fetch("HEDDLE_STALLS", ""))

    # @param scheduler [Heddle::Scheduler]
    # @return [void]
    def self.watch(scheduler)
      scheduler.watch_running
      return if Ractor.current[:heddle_stalls]&.alive? # (the child of a fork has none)

      Ractor.current[:heddle_stalls] = Thread.new { new(LIMIT).run }.tap { |thread| thread.name = THREAD_NAME }
    end

    # @param limit [Float] seconds
    def initialize(limit)
      @limit = limit
      @told = ObjectSpace::WeakMap.new # scheduler => the stall that was told last
    end

    # Never returns.
    def run
      while true # rubocop:disable Style/InfiniteLoop -- loop would be one more block
        sleep(@limit / 4)
        Dump.schedulers.each_key { |scheduler| look(scheduler) unless scheduler.closed? }
      end
    end

    private

    def look(scheduler)
      fiber, seconds, number = scheduler.running
      return if seconds.nil? || seconds < @limit || @told[scheduler] == number

      @told[scheduler] = number
      tell(scheduler, fiber, seconds)
    end

    def tell(scheduler, fiber, seconds)
      lines = TaskFailure.clean(scheduler.thread.backtrace || []).map { |line| "        #{line}\n" }
      $stderr.write(format("heddle: %s has kept all others from running for %.3f s (HEDDLE_STALLS=%g), and is at\n%s",
                           name_of(scheduler, fiber), seconds, @limit, lines.join))
    end

    def name_of(scheduler, fiber)
      task = scheduler.tasks.find { |one| one.fiber.equal?(fiber) }
      return "fiber #{fiber.inspect}" unless task

      task.name ? "task #{task.name.inspect}" : "a task without a name"
    end
  end
  private_constant :Stalls
end
