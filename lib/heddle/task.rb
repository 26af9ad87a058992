# frozen_string_literal: true

module Heddle
  using Internal

  # One concurrent piece of work: a fiber, its outcome, and the fibers that wait for it. Heddle.spawn makes it.
  #
  # Any fiber and any thread may wait for it or cancel it.
  class Task
    # @return [Heddle::Task, nil] the task that runs here, also in fibers that it has resumed (an Enumerator)
    def self.current
      task = here
      task if task && Scheduler.current&.root.equal?(task.fiber) # this may be the task that has started a plain fiber
    end

    # @return [String, Symbol, nil] the name that was given to Heddle.spawn; for a Proc, the value that it returns now
    def name = @name.respond_to?(:call) ? @name.call : @name

    # @private The fiber that runs it; nil when it has ended, because Ruby frees its stack only with the fiber.
    attr_reader :fiber

    # @private The scope in which it was spawned; for the block of Heddle.run, the scope that the run opens.
    attr_accessor :scope

    # @private Heddle passes all of these arguments.
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
    # @raise [Exception] the error of the block; Heddle::Cancelled if it was cancelled
    # @raise [Heddle::Error] in the task itself, which would wait for ever
    def value
      wait
      TaskFailure.raise_again(@error) if @error

      @value
    end

    # @return [Exception, nil] the error with which the task failed, or the Cancelled that ended it
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

      queue = waiters # comes before the question: the end of the task closes only what is there
      queue.wait(@scheduler, timeout) unless @finished
      @finished ? self : nil
    end

    # Raises Heddle::Cancelled in the task, where it waits now, or at its next wait, but not before the end of a
    # Heddle.shield. Does nothing if the task has ended. If the task rescues the exception, a further cancel is raised
    # at its next wait, but not while the first one is on its way, because its ensure and rescue clauses may wait.
    #
    # @param reason [Object, nil] the reason, which its error contains, too
    # @return [self]
    def cancel(reason = nil)
      raise_into(cancelled_for(reason))
      # A task's own cancel is raised here, at the end of a mask, unless another mask delays it.
      @scheduler.raise_pending if Fiber.current.equal?(@fiber)
      self
    end

    # @private Cancels the task because its scope or the run ends: once, even if both do. The mark is set afterwards,
    #   because an exception for the thread may be raised in between. The task's own cancel is raised at its next wait.
    def cancel_once(reason)
      raise_into(cancelled_for(reason)) unless @cancelled_once
      @cancelled_once = true
    end

    # @private Cancels the task at the end of the grace period, where it waits, also in an ensure clause or a shield.
    def cancel_at_last(grace, reason)
      raise_into(Cancelled.at_last(grace, reason)) { |fiber, error| @scheduler.force(fiber, error) }
    end

    # @private Kills the fibers of a task that goes on after its last cancel, and names it on stderr.
    def kill(grace)
      fibers = @scheduler.waits.select { |wait| wait[:root].equal?(@fiber) }.map { |wait| wait[:fiber] }
      fibers.each do |fiber|
        ErrorReport.print_killed(self, grace, fiber) unless @killed
        @killed = true
        @scheduler.kill_fiber(fiber)
      end
    end

    # @return [Symbol] :running, :finished (it has a value), :failed (it has an error) or :cancelled; :waiting is the
    #   status of a job of a FiberPool that has not started
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

    # @return [Boolean] was it cancelled, before it was too late?
    def cancelled?
      @error.is_a?(Cancelled) && @error.meant_for?(self)
    end

    # @return [String]
    def inspect
      "#<Heddle::Task #{"#{Wording.in_line(name)} " if @name}#{status}>"
    end

    # @private Gives the task this name while the block runs.
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

    # @private Does its outcome end its scope? An exception that is meant for the program ends more than its task.
    def fails_scope?
      return false if @error.nil? || cancelled?

      !@isolated || FOR_THE_PROGRAM.any? { |kind| @error.is_a?(kind) }
    end

    # @private Has it failed, and has nobody received the error so far?
    def unheard? = @isolated && !@asked && !@error.nil? && !cancelled?

    # @private Marks its outcome as requested.
    def asked! = @asked = true

    # @private Has somebody asked for its value?
    def asked? = @asked

    # @private Returns the error like #error, but does not count as a request of the program.
    def failure = @error

    # @private Records that it was started while an exception was on its way, in an ensure or rescue clause; perhaps its
    #   scope is ending.
    def started_amid(error, cleans_up)
      @amid = error
      @cleans_up = cleans_up
    end

    # @private Does it exist to clean up after this exception, or after a cancel?
    def cleans_up_after?(error)
      @cleans_up || (!@amid.nil? && @amid.equal?(error))
    end

    # @private Raises a cancel of the task's own.
    # @yieldparam fiber [Fiber] the block raises it in this fiber; without a block it is raised like any cancel
    def raise_into(error)
      error.meant_for(self)
      fiber = @fiber # a task of another thread may end meanwhile
      return self if @finished

      if fiber
        block_given? ? yield(fiber, error) : @scheduler.interrupt(fiber, error)
      else
        @early ||= error
        raise_early if @fiber # it has started meanwhile
      end
      self
    end

    # @private
    def start(arguments, &block)
      # A block stands in the line that spawns it, but a method or a lambda may not.
      @place = TaskFailure.place_of_caller if block.lambda?
      @arguments = arguments
      @block = block
      start_fiber(@scheduler)
      raise_early # a hook of Heddle.on_spawn may have cancelled it
      self
    end

    # @private Does the work of its fiber, before the fiber calls #ended. A block for that would need two more objects.
    def run
      arguments = @arguments
      block = @block
      @arguments = @block = nil
      run_block(arguments, &block)
    end

    # @private Runs the task in a fiber that does more than that.
    def execute(arguments = [], &)
      @scheduler.task = self
      run_block(arguments, &)
    ensure
      @scheduler.end_task(self)
    end

    # @private Runs the block of a run, which the fiber of the caller executes by itself.
    def stand_for_block
      @fiber = Fiber.current
      @value = yield
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      @error = e
      @scheduler.left_task(e)
      close_handshakes
      e.meant_for(self) if e.is_a?(Cancelled)
      raise
    ensure
      begin
        finish
      ensure
        finish # an interrupt may come in between
      end
    end

    # @private For Heddle.select.
    # @param receiver [Selection] gets the value
    # @return [Boolean, nil] nil: it has not ended
    def receive(receiver) = (receiver.found(self, [value]) if @finished)

    # @private For Heddle.select.
    def add_receiver(receiver) = waiters.add_receiver(receiver)

    # @private For Heddle.select.
    def remove_receiver(receiver) = waiters.remove_receiver(receiver)

    # @private Wakes all fibers and threads that wait for it. When an interrupt (Thread#raise) ends the call, it is
    #   called once more. A signal handler that runs here may wait. A cancel reaches the handler, because the task is
    #   alive until its scope has let go of it.
    def ended
      @error ||= Cancelled.new("the task's fiber was killed") unless @returned
      @scope&.task_ended(self)
      finish
    end

    private

    # Raises the cancel that came before the task had a fiber, once: Ruby switches to no other thread between the look
    # at it and its removal.
    def raise_early
      fiber = @fiber
      error = @early
      @early = nil
      @scheduler.interrupt(fiber, error) if fiber && error
    end

    def cancelled_for(reason) = Cancelled.new(Wording.with_reason("the task was cancelled", reason), reason:)

    # @return [Completion] on which fibers and threads wait for its end
    def waiters = @waiters || @scheduler.waiters_of(self, Completion.new(inspect, awaited: self))

    def finish
      @finished = true
      @fiber = @amid = nil # Ruby frees its stack when nobody keeps it
      @waiters&.close
    end

    # Spends a part of the turn, because a loop over many tasks that have ended must not keep the others from running.
    def finished_already
      Heddle.checkpoint
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

    def close_handshakes = defined?(CoreExt::SSLHandshake) && CoreExt::SSLHandshake.close_open

    def fail_with(error, block)
      @error = error
      @scheduler.left_task(error)
      close_handshakes
      return error.meant_for(self) if error.is_a?(Cancelled)

      TaskFailure.end_task(error, name, @place || block.source_location&.join(":"))
    end
  end
end
