# frozen_string_literal: true

require "timeout"

# Limits in time.
module Heddle
  using Internal

  # Raised by Heddle.timeout, and by a Heddle.scope with a deadline, when the time is over.
  class TimeoutError < ::Timeout::Error
    # @private
    # @return [Timeout::ExitException] the exception that ends the block of a limit
    def self.pending(seconds) = ::Timeout::ExitException.new("not done after #{seconds} s")

    # @private Makes the error of a limit. It contains the other errors that were raised meanwhile.
    def self.of(pending)
      error = new(pending.message)
      error.set_backtrace(pending.backtrace)
      TaskFailure.pass_on(pending, error)
      error
    end
  end

  # Delays nothing: Ruby raises the pending exceptions of the thread that are not delayed.
  NOTHING = { Class.new => :immediate }.freeze
  private_constant :NOTHING

  class << self
    # Calls the block, and ends it when the time is over. A +rescue => e+ in the block does not catch the exception that
    # ends it. When the ensure blocks have run, Heddle.timeout raises Heddle::TimeoutError. It works in tasks and in
    # every thread, also outside of Heddle.run. Timeouts may be nested: the first one that is over ends its own block.
    #
    # It also ends the tasks of a Heddle.run, Heddle.map and so on in the block. It does not end the tasks that
    # Heddle.spawn itself starts in the block, because these belong to the scope around it.
    #
    # @param seconds [Numeric, nil] nil, and more than 1e9 (31 years): no limit; 0 or less: the time is over before the
    #   block begins
    # @yield
    # @return [Object] the value of the block
    # @raise [Heddle::TimeoutError] when the time is over
    # @raise [ArgumentError] without a block, or if the seconds are no number
    def timeout(seconds, &)
      Check.refuse("Heddle.timeout needs a block") unless block_given?
      return yield if seconds.nil?

      Check.time("seconds", seconds)
      return yield if seconds > Check::SECONDS.end # Ruby's own Timeout cannot wait for that time

      raise TimeoutError, TimeoutError.pending(seconds).message unless seconds.positive?

      with_deadline_of_thread(seconds) { end_after(seconds, &) }
    end

    # Runs the block in a scope, as Heddle.scope does, and leaves it when the time is over: its tasks and the block are
    # cancelled, their ensure blocks run, and move_on_after returns nil. It raises only errors that are raised
    # meanwhile.
    #
    # @example The answers that have come after a second
    #   answers = []
    #   Heddle.move_on_after(1) do |scope|
    #     hosts.each { |host| scope.spawn { answers << ask(host) } }
    #   end
    #
    # @param seconds [Numeric, nil] nil: no limit; 0 or less: the block is not called
    # @param grace [Numeric, nil] see Heddle.run
    # @yieldparam scope [Heddle::Scope] its method cancelled? says afterwards whether it was cut short
    # @return [Object, nil] the value of the block; nil if it was cut short
    # @raise [Exception] the error of the first task that failed
    # @raise [ArgumentError] without a block, if the seconds or the grace are no number, or if the grace is negative
    def move_on_after(seconds, grace: nil, &)
      Check.refuse("Heddle.move_on_after needs a block") unless block_given?

      Check.time("seconds", seconds)
      Check.length_of_time("grace", grace)
      Scope.limited(seconds, grace, softly: true, &) unless seconds && !seconds.positive?
    end

    # Returns the time that the caller has: the seconds until the earliest deadline of a scope, of Heddle.move_on_after,
    # Heddle.timeout or Timeout.timeout around it. A library can hand it on to a server, or to a client that has time
    # limits of its own. In a thread without Heddle, only Heddle.timeout counts.
    #
    # @example
    #   http.read_timeout = Heddle.remaining || 60
    #
    # @return [Float, nil] 0.0 or more; nil: the caller has no deadline
    def remaining
      of_thread = Thread.current.thread_variable_get(:heddle_deadline)
      [of_thread && [of_thread - Clock.now, 0.0].max, remaining_in_run].compact.min
    end

    private

    # A task ends with its scope, and so with the deadlines around the block of the scope.
    def remaining_in_run
      scheduler = Scheduler.of_thread or return

      left = [scheduler.time_left(scheduler.root, nil)]
      task = Task.here
      while (scope = task&.scope) && !scope.task.equal?(task)
        left << scope.time_left
        task = scope.task
      end
      left.compact.min
    end

    # Notes the deadline of a thread without Heddle for Heddle.remaining. The scheduler knows those of its fibers.
    def with_deadline_of_thread(seconds)
      return yield if Scheduler.current || Scheduler.of_blocking_fiber

      begin
        thread = Thread.current
        before = thread.thread_variable_get(:heddle_deadline)
        thread.thread_variable_set(:heddle_deadline, [before, Clock.now + seconds].compact.min)
        yield
      ensure
        thread.thread_variable_set(:heddle_deadline, before)
      end
    end

    # Ends the block after the time. The identity of the exception shows whose time was over.
    def end_after(seconds)
      pending = TimeoutError.pending(seconds)
      begin
        ::Timeout.timeout(seconds, pending, pending.message) { yield }
      rescue ::Timeout::ExitException => e
        raise unless e.equal?(pending)

        raise TimeoutError.of(e), cause: nil
      rescue Exception # rubocop:disable Lint/RescueException -- it is raised again
        withdraw(pending)
        raise
      end
    end

    # Takes the exception of a limit out of a thread that has raised another one first. Ruby raises one pending
    # exception at a time, and would raise the next one later, anywhere. Timeout.timeout leaves it there.
    def withdraw(pending)
      Thread.handle_interrupt(NOTHING) { nil } if Thread.pending_interrupt?(::Timeout::ExitException)
    rescue ::Timeout::ExitException => e
      raise unless e.equal?(pending)
    end
  end
end
