# frozen_string_literal: true

module Heddle
  using Internal

  # One concurrent piece of work: a fiber, its outcome, and those who wait for it. Made by Heddle.spawn.
  #
  # Waiting and cancelling work from any fiber and from any thread.
  class Task
    # @return [String, nil]
    attr_reader :name

    # @return [Exception, nil] what the task failed with, or the Cancelled that ended it
    attr_reader :error

    # @private The fiber that runs it; nil when it has ended, for Ruby frees its stack only with the fiber.
    attr_reader :fiber

    # @private
    def initialize(scope, name, kind = nil)
      @scope = scope
      @name = name
      @kind = kind # :background, :isolated or nil
      @finished = false
      @cancelled = false
      @fiber = @value = @error = @waiters = @arguments = @block = nil
      @scheduler = Fiber.scheduler
    end

    # Waits for the task.
    #
    # @return [Object] the value of its block
    # @raise [Exception] what the block raised; Heddle::Cancelled if it was cancelled
    def value
      wait
      raise @error, cause: @error.cause if @error # not what its caller is rescuing

      @value
    end

    # Waits until the task has ended, however it ends.
    #
    # @param timeout [Numeric, nil] seconds
    # @return [self, nil] nil if it is still running when the time is over
    def wait(timeout = nil)
      return self if @finished

      waiters = @waiters || @scheduler.waiters_of(self, Completion.new(inspect))
      waiters.wait(@scheduler, timeout) unless @finished # closed, not filled, when the task ends
      @finished ? self : nil
    end

    # Raises Heddle::Cancelled in the task: where it waits now, or when it waits next; not before the end of a
    # Thread.handle_interrupt(Heddle::Cancelled => :never). Does nothing if it has ended.
    #
    # @return [self]
    def cancel
      fiber = @fiber # of another thread it may end meanwhile
      return self if @finished || @cancelled || fiber.nil?

      error = Cancelled.new("the task was cancelled")
      own = Fiber.current.equal?(fiber)
      # At once: what is sent to the thread must not come between the mark and the strike, which would be lost.
      @cancelled = own || @scheduler.interrupt(fiber, error)
      raise error if own

      self
    end

    # @return [Boolean] has the task ended?
    def finished?
      @finished
    end

    # @return [Boolean]
    def alive?
      !@finished
    end

    # @return [Boolean] was it cancelled (and not too late)?
    def cancelled?
      @error.is_a?(Cancelled)
    end

    # @return [String]
    def inspect
      state = if alive? then "running"
              elsif cancelled? then "cancelled"
              else @error ? "failed" : "finished"
              end
      "#<Heddle::Task #{"#{@name} " if @name}#{state}>"
    end

    # @private
    def started?
      @finished || !@fiber.nil?
    end

    # @private
    def background? = @kind == :background

    # @private Does it end its scope by the way it has ended? What is meant for the program ends more than its task.
    def fails_scope?
      return false if @error.nil? || cancelled?

      @kind != :isolated || [SystemExit, SignalException, NoMemoryError].any? { |kind| @error.is_a?(kind) }
    end

    # @private
    def start(arguments, &block)
      @arguments = arguments
      @block = block
      @scheduler.start_task(self)
      self
    end

    # @private What its fiber does. (A block for that would be two more objects.)
    def run
      arguments = @arguments
      block = @block
      @arguments = @block = nil
      execute(arguments, &block)
    end

    # @private
    def execute(arguments = [])
      @fiber = Fiber.current
      Fiber[:heddle_scope] = @scope
      @value = yield(*arguments)
      returned = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is the task's outcome
      @error = e
      e.spent! if e.is_a?(Cancelled) && !e.frozen?
      raise unless @scheduler.equal?(Fiber.scheduler) # the child of a fork: it ends with this task
    ensure
      @scheduler.end_task(self, returned)
    end

    # @private Tells all who wait for it. When that is interrupted (Thread#raise), it is called once more.
    def ended(returned)
      @error ||= Cancelled.new("the task's fiber was killed") unless returned
      @finished = true
      @fiber = nil # Ruby frees its stack when nobody keeps it
      @waiters&.close
      @scope&.task_ended(self)
      @scope = nil # it knows its owner's fiber
    end
  end
end
