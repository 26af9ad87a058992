# frozen_string_literal: true

module Heddle
  using Internal

  # Reports a task that keeps the others from running, while it does. HEDDLE_STALLS=0.1 switches it on, with the seconds
  # that a task may take.
  class Stalls
    THREAD_NAME = "heddle stalls"

    class << self
      # @param text [String]
      # @return [Float, nil] the seconds in HEDDLE_STALLS
      def limit(text)
        return if text.empty?

        limit = Float(text, exception: false)
        return limit if limit && Check::SECONDS.cover?(limit)

        warn("heddle: HEDDLE_STALLS=#{text} has no effect: it must be a positive number of seconds")
      end

      # @param scheduler [Heddle::Scheduler]
      # @return [void]
      def watch(scheduler)
        scheduler.watch(LIMIT)
        return if here&.alive? # the child of a fork has no such thread

        Ractor.current[:heddle_stalls] = new
      end

      # Looks now. C code calls it when a method has held the GVL for too long (stalls.h).
      # @return [void]
      def look
        Thread.handle_interrupt(Object => :never) do
          here&.look
        rescue StandardError
          nil # it cannot be written to $stderr
        end
      end

      private

      def here = Ractor.current[:heddle_stalls]
    end

    LIMIT = limit(ENV.fetch("HEDDLE_STALLS", ""))

    def initialize
      @told = ObjectSpace::WeakMap.new # scheduler => the stall that was reported last
      @thread = Thread.new { look_out }
      @thread.name = THREAD_NAME
    end

    # @return [Boolean]
    def alive? = @thread.alive?

    # @return [void]
    def look
      Dump.schedulers.each_key { |scheduler| look_at(scheduler) unless scheduler.closed? }
    end

    private

    # Never returns.
    def look_out
      while true # rubocop:disable Style/InfiniteLoop -- loop takes a StopIteration for its own
        sleep(LIMIT / 4)
        look
      end
    end

    def look_at(scheduler)
      fiber, seconds, since = scheduler.running
      return if seconds.nil? || seconds < LIMIT || @told[scheduler] == since

      @told[scheduler] = since
      tell(scheduler, fiber, seconds)
    end

    # Reports the stall. It must not wait, because it may run in the fiber that it reports.
    def tell(scheduler, fiber, seconds)
      lines = TaskFailure.clean(scheduler.thread.backtrace || []).map { |line| "        #{line}\n" }
      text = format("heddle: %s has kept the others from running for %.3f s (HEDDLE_STALLS=%g). It is at\n%s",
                    name_of(scheduler, fiber), seconds, LIMIT, [*lines, *hint(scheduler, fiber)].join)
      Fiber.blocking { $stderr.write(text) }
    end

    # Time slices help only while Ruby has a say.
    def hint(scheduler, fiber)
      return if scheduler.time_slice || scheduler.thread.status != "run" || fiber&.blocking?

      "        A time slice would let them run: Heddle.run(time_slice: 0.01)\n"
    end

    def name_of(scheduler, fiber)
      return "the program" unless fiber # no fiber of it has run yet

      task = scheduler.tasks.find { |one| one.fiber.equal?(fiber) }
      return "fiber #{fiber.inspect}" unless task

      task.name ? "task #{task.name.inspect}" : "a task without a name"
    end
  end
  private_constant :Stalls
end
