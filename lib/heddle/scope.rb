# frozen_string_literal: true

module Heddle
  using Internal

  # The lifetime of a group of tasks: Heddle.run opens one, waits for all its tasks, and cancels them when one fails.
  class Scope
    # @return [Heddle::Scope] the scope in which Heddle.spawn starts tasks here
    # @raise [Heddle::Error] outside of Heddle.run
    def self.current
      scope = Fiber[:heddle_scope]
      return scope if scope&.open? && scope.runs_here? # (a thread inherits the storage of the fiber that starts it)

      raise Error, "no Heddle is running here: put the call inside Heddle.run { ... }, or run the program with " \
                   "`heddle run`"
    end

    # Runs the block in a new scope and waits for the tasks spawned in it.
    #
    # @return [Object] the value of the block
    def self.open(&) = new.enter(&)

    # @private
    def initialize
      @tasks = {}.compare_by_identity
      @background = 0 # how many of them are background tasks
      @owner = Fiber.current
      @scheduler = Fiber.scheduler
      @root = @scheduler.root
      @state = :open # then :ending, when its tasks are cancelled, then :ended
      @cause = nil # the first task that failed
      @strike = nil # what is raised in the owner for it
      @cancelled = nil # what somebody else has cancelled the owner with
      @all_ended = nil
      @scheduler.scopes[self] = true
    end

    # @return [Array<Heddle::Task>] those that have not ended
    def tasks
      @tasks.keys
    end

    # Starts a task in this scope. When the scope is failing already, it is cancelled where it first waits.
    #
    # @param arguments [Array<Object>] what the block gets
    # @param name [String, nil]
    # @param background [Boolean] see Heddle.spawn
    # @return [Heddle::Task]
    # @raise [Heddle::Error] when the scope has ended
    def spawn(*arguments, name: nil, background: false, &)
      start(arguments, name, background ? :background : nil, &)
    end

    # @private Starts a task whose failure is its own: it does not end the scope. What the block spawns belongs to it.
    def spawn_isolated(&block)
      start([], nil, :isolated) { Scope.open(&block) }
    end

    # @private The same as spawn, without objects of its own.
    def start(arguments, name, kind, &)
      raise Error, "the scope has ended: its Heddle.run has returned" unless open?

      task = Task.new(self, name, kind)
      @tasks[task] = true
      @background += 1 if task.background?
      task.start(arguments, &)
      task.cancel if @state == :ending
      task
    ensure
      remove(task) unless task.nil? || task.started? # Ruby had no stack for it
    end

    # @return [Boolean] can tasks be spawned in it?
    def open? = @state != :ended

    # @private Does its scheduler run on this thread?
    def runs_here?
      @scheduler.equal?(Fiber.scheduler)
    end

    # @private Runs the owner's block in it, then waits for the tasks.
    def enter(&)
      outer = Fiber[:heddle_scope]
      Fiber[:heddle_scope] = self
      supervise(&)
    ensure
      Fiber[:heddle_scope] = outer
    end

    # @private A task tells that it has ended, perhaps more than once. The first failure ends the scope.
    def task_ended(task)
      remove(task)
      end_by_failure if task.fails_scope? && task.equal?(@cause ||= task)
      @all_ended&.close if all_ended?
    end

    private

    def remove(task)
      @background -= 1 if @tasks.delete(task) && task.background?
    end

    # Background tasks are waited for when they have been cancelled.
    def all_ended?
      @tasks.size <= (@state == :ending ? 0 : @background)
    end

    def supervise
      value = yield
      outlast_tasks
      @cause ? raise_failure : value
    rescue Exception => e # rubocop:disable Lint/RescueException -- the tasks must end before it goes on
      raise unless runs_here? # the tasks of a parent process never run in the child of a fork

      note_cancel(e)
      end_tasks
      raise_failure if @cause && e.is_a?(Cancelled)

      raise
    ensure
      end_tasks unless @tasks.empty? || !runs_here? # the owner is being killed
      close
    end

    # Those in the background end with the others.
    def outlast_tasks
      wait_for_tasks until @cause || all_ended? || !runs_here?
      end_tasks if @cause.nil? && @background.positive? && runs_here?
    end

    def close
      @state = :ended
      @scheduler.scopes.delete(self)
      [@owner, @root].each { |fiber| @scheduler.withdraw(fiber, @strike) } if @strike
      # The failure of a task goes first; an owner that was cancelled meanwhile hears of it at its next wait.
      @scheduler.interrupt(@owner, @cancelled) if @cancelled && !@cancelled.equal?($!)
    end

    # With its own cause: what the owner was doing meanwhile, and its cancel, are none.
    def raise_failure
      raise @cause.error, cause: @cause.error.cause
    end

    def end_by_failure
      cancel_tasks
      @strike ||= Cancelled.new("a task of the scope failed")
      @scheduler.interrupt_chain(@owner, @root, @strike)
    end

    def cancel_tasks
      @state = :ending
      @tasks.keys.each(&:cancel)
    end

    # What strikes the owner meanwhile (a timeout, Fiber#raise) is raised when the tasks have ended; of several the last
    # one, as what is raised in an ensure block takes the place of what was raised before.
    def end_tasks
      struck = nil
      begin
        cancel_tasks
        wait_for_tasks until @tasks.empty?
      rescue SignalException, SystemExit, NoMemoryError, Deadlock
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException
        raise if e.class.name == "fatal" # rubocop:disable Style/ClassEqualityComparison -- it has no constant

        e.is_a?(Cancelled) ? note_cancel(e) : struck = e
        retry
      end
      raise struck if struck
    end

    # A cancel of the owner, which does not come from this scope.
    def note_cancel(error)
      @cancelled = error if error.is_a?(Cancelled) && !error.equal?(@strike) && !error.spent?
    end

    def wait_for_tasks
      @all_ended = Completion.new("the tasks of its scope")
      @all_ended.wait(@scheduler) unless all_ended?
    end
  end
end
