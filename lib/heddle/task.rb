# frozen_string_literal: true

module Heddle
  using Internal

  # One concurrent piece of work: a fiber, its outcome, and those who wait for it. Made by Heddle.spawn.
  #
  # Waiting and cancelling work from any fiber and from any thread.
  class Task
    # Of a mask that holds nothing back.
    NOTHING = {}.freeze
    private_constant :NOTHING

    # @return [Heddle::Task, nil] the one that runs here, also in the fibers that it has resumed (an Enumerator)
    def self.current
      task = here
      task if task && Scheduler.current&.root.equal?(task.fiber) # (it may be the one that has started a plain fiber)
    end

    # @return [String, Symbol, nil] what Heddle.spawn was given; of a Proc, what it returns now
    def name = @name.respond_to?(:call) ? @name.call : @name

    # @private The fiber that runs it; nil when it has ended, for Ruby frees its stack only with the fiber.
    attr_reader :fiber

    # @private The one that it was spawned in; of the block of Heddle.run, the one that this opens.
    attr_accessor :scope

    # @private (Heddle gives all of these.)
    def initialize(scope = nil, name = nil, background = nil, # rubocop:disable Metrics/ParameterLists
                   isolated = Check.no_new(Task, "Heddle.spawn"))
      @scope = scope
      @name = name && Check.task_name(name)
      @background = background
      @isolated = isolated
      @finished = @returned = @cancelled_once = @asked = @cleans_up = @killed = false
      @fiber = @value = @error = @waiters = @amid = @place = @arguments = @block = nil
      @scheduler = Fiber.scheduler
    end

    # Waits for the task.
    #
    # @return [Object] the value of its block
    # @raise [Exception] what the block raised; Heddle::Cancelled if it was cancelled
    # @raise [Heddle::Error] in the task itself, which would wait for ever
    def value
      wait
      TaskFailure.raise_again(@error) if @error

      @value
    end

    # @return [Exception, nil] what the task failed with, or the Cancelled that ended it
    def error
      @asked = true
      @error
    end

    # Waits until the task has ended, however it ends.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if it is still running when the time is over
    # @raise [ArgumentError] if the timeout is not a number
    # @raise [Heddle::Error] in the task itself, without a timeout: it would wait for ever
    def wait(timeout = nil)
      Check.time("timeout", timeout)
      @asked = true
      return finished_already if @finished
      raise Error, "a task cannot wait for its own end: #{inspect}" if timeout.nil? && equal?(Task.current)

      waiters = @waiters || @scheduler.waiters_of(self, Completion.new(inspect, awaited: self))
      waiters.wait(@scheduler, timeout) unless @finished # closed, not filled, when the task ends
      @finished ? self : nil
    end

    # Raises Heddle::Cancelled in the task: where it waits now, or when it waits next; not before the end of a
    # Heddle.shield. Does nothing if it has ended. If it rescues that, a further cancel is raised when it waits next;
    # but not while the first one is on its way: its ensure and rescue clauses may wait.
    #
    # @param reason [Object, nil] why: its error has it, too
    # @return [self]
    def cancel(reason = nil)
      strike(Cancelled.new("the task was cancelled#{": #{Wording.of(reason)}" unless reason.nil?}", reason:))
    end

    # @private Its scope ends, or the run: one cancel, however many of them say so. (Marked afterwards: what is sent to
    # the thread may come between.)
    def cancel_once(reason)
      cancel(reason) unless @cancelled_once
      @cancelled_once = true
    end

    # @private The grace period is over: where it waits, also in an ensure clause or a shield.
    def cancel_at_last(grace, reason)
      strike(Cancelled.at_last(grace, reason)) { |fiber, error| @scheduler.force(fiber, error) }
    end

    # @private It goes on though it was cancelled at last: it is named on stderr, and its fibers are killed.
    def kill(grace)
      fibers = @scheduler.waits.select { |wait| wait[:root].equal?(@fiber) }.map { |wait| wait[:fiber] }
      fibers.each do |fiber|
        ErrorReport.print_killed(self, grace, fiber) unless @killed
        @killed = true
        @scheduler.kill_fiber(fiber)
      end
    end

    # @return [Symbol] :running, :finished (it has a value), :failed (it has an error) or :cancelled; :waiting is a job
    #   of a FiberPool that has not started
    def status
      return :running unless @finished
      return :finished unless @error

      cancelled? ? :cancelled : :failed
    end

    # @return [Boolean] has the task ended?
    def finished?
      @finished
    end

    # @return [Boolean] has it not ended yet?
    def alive?
      !@finished
    end

    # @return [Boolean] was it cancelled (and not too late)?
    def cancelled?
      @error.is_a?(Cancelled) && @error.meant_for?(self)
    end

    # @return [String]
    def inspect
      "#<Heddle::Task #{"#{Wording.in_line(name)} " if @name}#{status}>"
    end

    # @private It has this name while the block runs.
    def named(name)
      before = @name
      @name = name
      yield
    ensure
      @name = before
    end

    # @private
    def started?
      @finished || !@fiber.nil?
    end

    # @private
    def background? = @background

    # @private Is somebody to hear of its failure who does not ask? (Not of one that is in good hands.)
    def isolated? = @isolated && !@asked

    # @private Does it end its scope by the way it has ended? What is meant for the program ends more than its task.
    def fails_scope?
      return false if @error.nil? || cancelled?

      !@isolated || FOR_THE_PROGRAM.any? { |kind| @error.is_a?(kind) }
    end

    # @private Has it failed so far without anybody to hear of it?
    def unheard? = @isolated && !@asked && !@error.nil? && !cancelled?

    # @private Its outcome is in somebody's hands.
    def asked! = @asked = true

    # @private Has somebody asked for its value?
    def asked? = @asked

    # @private The same as #error, for who does not ask on behalf of the program.
    def failure = @error

    # @private It was started while an exception was on its way, in an ensure or rescue clause; perhaps in a scope that
    # is ending.
    def started_amid(error, cleans_up)
      @amid = error
      @cleans_up = cleans_up
    end

    # @private Is it there to clean up after this exception, or after a cancel?
    def cleans_up_after?(error)
      @cleans_up || (!@amid.nil? && @amid.equal?(error))
    end

    # @private A cancel of the task's own.
    # @yieldparam fiber [Fiber] how it is raised; without a block as any cancel
    def strike(error)
      error.meant_for(self)
      fiber = @fiber # of another thread it may end meanwhile
      return self if @finished
      return tap { @early ||= error } unless fiber

      block_given? ? yield(fiber, error) : @scheduler.interrupt(fiber, error)
      # Its own one strikes here, at the end of a mask, unless another mask holds it back.
      @scheduler.shield(NOTHING) { nil } if Fiber.current.equal?(fiber)
      self
    end

    # @private
    def start(arguments, &block)
      # A block stands in the line that spawns it; a method or a lambda need not.
      @place = TaskFailure.place_of_caller if block.lambda?
      @arguments = arguments
      @block = block
      start_fiber(@scheduler)
      strike(@early) if @early # a hook of Heddle.on_spawn has cancelled it
      self
    end

    # @private What its fiber does, before it calls #ended. (A block for that would be two more objects.)
    def run
      arguments = @arguments
      block = @block
      @arguments = @block = nil
      run_block(arguments, &block)
    end

    # @private The same in a fiber that does more than that.
    def execute(arguments = [], &)
      @scheduler.task = self
      run_block(arguments, &)
    ensure
      @scheduler.end_task(self)
    end

    # @private It stands for the block of a run, which the fiber of the caller runs by itself.
    def stand_for_block
      @fiber = Fiber.current
      @value = yield
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      @error = e
      @scheduler.left_task(e)
      e.meant_for(self) if e.is_a?(Cancelled)
      raise
    ensure
      begin
        finish
      ensure
        finish # (an interrupt may come in between)
      end
    end

    # @private Tells all who wait for it. When that is interrupted (Thread#raise), it is called once more. A signal's
    # handler that runs here may wait: a cancel reaches it, for the task is alive until its scope has let go of it.
    def ended
      @error ||= Cancelled.new("the task's fiber was killed") unless @returned
      @scope&.task_ended(self)
      finish
    end

    private

    def finish
      @finished = true
      @fiber = @amid = nil # Ruby frees its stack when nobody keeps it
      @waiters&.close
    end

    # A loop over many tasks that have ended must not keep the others from running.
    def finished_already
      CoreExt.spend_turn(nil)
      self
    end

    def run_block(arguments, &block)
      @fiber = Fiber.current
      @value = arguments.empty? ? yield : yield(*arguments)
      @returned = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is the task's outcome
      fail_with(e, block)
      raise unless @scheduler.equal?(Fiber.scheduler) # the child of a fork: it ends with this task
    end

    def fail_with(error, block)
      @error = error
      @scheduler.left_task(error)
      return error.meant_for(self) if error.is_a?(Cancelled)

      TaskFailure.end_task(error, name, @place || block.source_location&.join(":"))
    end
  end
end
