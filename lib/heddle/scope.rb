# frozen_string_literal: true

require_relative "scope/ending"
require_relative "scope/failing"
require_relative "scope/foreign_task"
require_relative "scope/limited"

module Heddle
  using Internal

  # The lifetime of a group of tasks: Heddle.run and Heddle.scope open one, wait for all its tasks, and cancel them when
  # one fails.
  class Scope
    include Ending
    include Failing
    include Limited

    # The default grace period, in seconds: the time that clean-up code has when a scope ends.
    GRACE = 5
    # Ruby's name for the frame of an ensure clause that an exception has entered.
    ENSURE = /\bensure in /
    private_constant :ENSURE

    class << self
      # @private
      # @return [Heddle::Scope] the scope in which Heddle.spawn starts tasks here
      # @raise [Heddle::Error] outside of Heddle.run
      def current
        innermost(Fiber.scheduler) || Scheduler.of_thread&.late_scope ||
          raise(Error, "no Heddle is running here: put the call inside Heddle.run { ... }, or run the program with " \
                       "`heddle run`")
      end

      # @private
      # @return [Heddle::Scope, nil] the open scope in which this fiber is
      def here = innermost(Fiber.scheduler)

      # @private
      # @return [Heddle::Scope, nil] the innermost open scope of this scheduler in which this fiber is, or was made
      def innermost(scheduler)
        scope = Fiber[:heddle_scope]
        task = Task.here
        scope = task.scope if task && !scope&.task.equal?(task) # the task belongs to its outermost scope
        scope = scope.outer until scope.nil? || scope.open?
        scope if scope&.scheduler.equal?(scheduler) # a thread inherits the storage of the fiber that starts it
      end

      # @private Runs the block in a new scope and waits for the tasks spawned in it.
      # @return [Object] the value of the block
      def open(grace: nil, &) = new(grace, true).enter(&)

      # @private Opens a scope that can be cancelled and has a deadline, in a run of its own if none exists.
      def limited(deadline, grace, softly: false, &)
        return new(grace, true).enter_limited(deadline, softly, &) if Scheduler.current

        Heddle.run(grace:) { new(grace, true).enter_limited(deadline, softly, &) }
      end
    end

    # @private
    # @param grace [Numeric, nil] seconds; nil: the grace of the scope around it
    # @param owner [Boolean] does a block wait for its tasks?
    def initialize(grace = nil, owner = Check.no_new(Scope, "Heddle.scope"))
      @tasks = {}.compare_by_identity
      @background = 0 # how many of them are background tasks
      @scheduler = Fiber.scheduler
      @outer = self.class.innermost(@scheduler)
      @spawn_hooks = @scheduler.spawn_hooks
      @task = Task.here
      @number = @scheduler.block_begins # of its block: see pending.h
      @grace = grace || @outer&.grace || GRACE
      @owner = owner ? Fiber.current : nil
      @root = owner ? @scheduler.root : nil
      @in_block = false # is the owner in its block, or waiting for the tasks that have not been cancelled?
      @amid = owner ? $! : nil # its owner rescues this error: a task started now does not clean up after it
      @state = :open # then :ending, when its tasks are cancelled, then :ended
      @reason = nil # the exception for which it ends
      @all_cancelled = false # have its tasks been cancelled? Another failure then costs nothing for each of them
      @failures = [] # the tasks whose failure has not left the scope, the first one first
      @unheard = @reporter = nil # isolated tasks that have failed, and the task that reports them
      @pending = @last_pending = nil # the errors raised in the owner: for a failed task, and at the end of the grace
      @cancelled = nil # a cancel of the owner from outside
      @grace_ends = nil # the end of the grace; nil: not yet known
      @grace_over = false # has the grace ended before?
      @limit = nil # ends the block of a Heddle.scope
      @cut_short = false
      @all_ended = @watch = nil
    end

    # @private
    attr_reader :scheduler, :outer, :task, :grace

    # @return [Array<Heddle::Task>] the tasks that have not ended
    def tasks
      @tasks.keys - [@reporter]
    end

    # Starts a task in this scope. When the scope is already ending, the task is cancelled at its first wait. A task
    # that is started in an ensure clause has the grace period instead.
    #
    # Any thread may call it. If it is not the thread of the scope, the task starts there as soon as the tasks of that
    # thread let others run. Until then it has no fiber, but the scope already waits for it.
    #
    # @param arguments [Array<Object>] the arguments of the block
    # @param name [String, Symbol, nil] see Heddle.spawn
    # @param background [Boolean] see Heddle.spawn
    # @param isolated [Boolean] see Heddle.spawn
    # @return [Heddle::Task]
    # @raise [Heddle::Error] when the scope has ended, or belongs to the parent of a fork
    # @raise [ArgumentError] without a block, or if the name is neither a String nor a Symbol
    def spawn(*arguments, name: nil, background: false, isolated: false, &)
      Check.refuse("Heddle::Scope#spawn needs a block") unless block_given?
      return start(Task.new(self, name, background, isolated), arguments, &) if runs_here? || !open?
      raise Error, "the scope belongs to the parent of a fork" unless elsewhere?

      task = line_up(ForeignTask.new(self, name, background, isolated), arguments, &)
      return task if open? || task.started?

      task.cancel
      refuse_when_ended
    end

    # Ends the scope early: its tasks and its block are cancelled, and their ensure blocks run. Then Heddle.scope
    # returns nil; it raises only errors that are raised meanwhile. Any task and any thread may call it.
    # In the block and in a task of the scope, the cancel is raised at once. Does nothing if the block has ended, and
    # its tasks, too, or if they are ending already.
    #
    # @example
    #   Heddle.scope do |scope|
    #     hosts.each { |host| scope.spawn { scope.cancel if (found = look_for(name, host)) } }
    #   end
    #
    # @param reason [Object, nil] the reason, which the Heddle::Cancelled of the block and of the tasks contains
    # @return [self]
    def cancel(reason = nil)
      exception = Cancelled.new(Wording.with_reason("the scope was cancelled", reason), reason:)
      return self unless @limit&.end_block(exception)

      @cut_short = true
      task = (Task.here if runs_here?)
      cancel_all_but(task, exception)
      raise_own_cancel(task)
      self
    end

    # @return [Boolean] was it cut short, by #cancel or by its deadline?
    def cancelled? = @cut_short

    # @return [Float, nil] the seconds that are left until its deadline; nil: it has none, or has ended
    def deadline = @limit&.left

    # Sets a new deadline, or takes it away. Does nothing when the block and the tasks have ended, or are ending. May be
    # called in any task and in any thread.
    #
    # @example More time while data comes
    #   Heddle.scope(deadline: 5) do |scope|
    #     response.read_body { |part| file.write(part) && scope.deadline = 5 }
    #   end
    #
    # @param deadline [Numeric, nil] seconds from now on; nil: no limit; 0 or less: the time is over
    # @return [Numeric, nil]
    # @raise [ArgumentError] if the deadline is no number
    def deadline=(deadline)
      Check.time("deadline", deadline)
      @limit&.set(deadline, TimeoutError.pending(deadline))
    end

    # @private Starts a task whose failure ends no other task, and is not reported, because the caller handles it. The
    #   tasks that the block spawns belong to it.
    #
    # @param ended [#call, nil] is called in the task at its end, also if a hook of Heddle.on_spawn has failed
    def spawn_isolated(name = nil, ended: nil, &block)
      task = Task.new(self, name, false, true)
      task.asked!
      work = hooked(task) do
        Task.match_apart(block)
        Scope.open(&block)
      end
      start_as_it_is(task, []) do
        work.call
      ensure
        ended&.call
      end
    end

    # @private Starts a task that is already made.
    def start(task, arguments, &) = start_as_it_is(task, arguments, &hooked(task, &))

    # @private Puts a task in line that has to wait before it starts.
    def line_up(task, arguments, &)
      block = hooked(task, &)
      take_in(task)
      task.line_up(arguments, block)
      cancel_task(task) if @state == :ending
      task
    end

    # @private
    # @return [Exception, nil] the error of the first task that failed
    def failure = @failures.first&.failure

    # @private
    # @return [Exception, nil] the error of the first task that failed, if somebody has asked for the value of that task
    def failure_told = (failure if @failures.first&.asked?)

    # @return [Boolean] can tasks be spawned in it?
    def open? = @state != :ended

    # @return [String]
    def inspect
      "#<#{self.class} #{open? ? "#{tasks.size} tasks" : "ended"}>"
    end

    # @private Does its scheduler run on this thread?
    def runs_here?
      @scheduler.equal?(Fiber.scheduler)
    end

    # @private Adds a resource whose method scope_ended is called when all tasks have ended.
    def own(resource)
      (@resources ||= {}.compare_by_identity)[resource] = true
      @scheduler.scopes[self] = true
    end

    # @private Removes a resource that is already closed.
    def disown(resource) = @resources&.delete(resource)

    # @private Runs the owner's block in it, then waits for the tasks.
    def enter(&)
      outer = Fiber[:heddle_scope]
      Fiber[:heddle_scope] = self
      supervise(&)
    ensure
      Fiber[:heddle_scope] = outer
    end

    # @private Runs the owner's block in it as #enter does, but the deadline or #cancel may cut it short.
    # @param softly [Boolean] does the end of the time raise no error?
    def enter_limited(deadline, softly, &)
      @limit = ScopeLimit.new(@scheduler, @number)
      enter { limited(deadline, softly, &) }
    rescue ::Timeout::ExitException => e
      raise unless e.equal?(@limit.raised)

      raise TimeoutError.of(e), cause: nil
    end

    # @private
    # @return [Float, nil] the seconds until the earliest deadline of its block and around it, up to the end of its task
    def time_left = @root && @scheduler.time_left(@root, @number)

    # @private Runs the block of a run in it, then waits for the tasks. Its scope is kept in the task, because Ruby
    #   copies the Fiber storage for each fiber.
    def enter_main(task, &)
      task.scope = self
      supervise(&)
    end

    # @private Records the end of a task. A task may call it more than once. The first failure ends the scope.
    def task_ended(task)
      if task.fails_scope?
        note_failure(task) if @tasks.key?(task)
      elsif task.unheard?
        note_unheard(task)
      end
      remove(task)
      note_end if all_ended?
      watch_owner if @in_block && @pending
    end

    # @private Ends a scope without an owner, when all of its tasks have ended.
    def finish = leave(nil)

    # @private Ends, in a fiber, a scope whose owner never comes back to it (an Enumerator that is never called again).
    def end_abandoned_here
      @in_block = false
      ErrorReport.print_all(end_tasks(nil))
      ErrorReport.print_all(close_resources)
    ensure
      close
    end

    # @private Is its owner in its block, or waiting for tasks that have not been cancelled?
    def in_block? = @in_block

    # @private
    # @return [Fiber, nil] the fiber of the task, or the plain fiber, that has opened it
    attr_reader :root

    # @private
    # @return [Array<Fiber>] the fibers of its tasks, and the fiber that watches its owner
    def fibers = [*@tasks.each_key.map(&:fiber), *@watcher]

    # @private Will its owner never come back to it?
    def abandoned? = !@owner.nil? && !@scheduler.busy?(@owner)

    # @private Reports the remaining errors when its scheduler is closed, because they are raised nowhere.
    def report_abandoned
      report_failures_left
      report_unheard
    end

    private

    # Does another thread run its scheduler? In the child of a fork none does.
    def elsewhere?
      thread = @scheduler.thread
      thread&.alive? && !thread.equal?(Thread.current)
    end

    # @return [Proc] the work of the program's task
    def hooked(task, &block)
      refuse_when_ended
      error = own_error and task.started_amid(error, cleans_up?(error))
      @spawn_hooks.empty? ? block : SpawnHook.wrap(task, block)
    end

    def refuse_when_ended
      raise Error, "the scope has ended: its block has returned, and its tasks have ended" unless open?
    end

    def take_in(task)
      refuse_when_ended
      @scheduler.scopes[self] = true if @tasks.empty?
      @tasks[task] = true
      @background += 1 if task.background?
    end

    def start_as_it_is(task, arguments, &)
      take_in(task)
      task.start(arguments, &)
      cancel_task(task) if @state == :ending
      task
    ensure
      remove(task) unless task.started? # Ruby had no stack for it
    end

    # Returns the exception on its way here, if it was raised after the scope was opened.
    def own_error = ($! unless $!.equal?(@amid))

    # Is a task that is started during this error a clean-up after a cancel, or after the error that ends the scope?
    # This is true in an ensure clause of a scope that is ending, but not for a worker that is started anew in a rescue
    # clause.
    def cleans_up?(error)
      return true if @state == :ending && caller.any? { |frame| frame.match?(ENSURE) }

      task = Task.here
      while error
        return true if error.is_a?(Cancelled) ? error.meant_for?(task) : error.equal?(@reason)

        error = TaskFailure.cause_of(error)
      end
      false
    end

    def note_end
      @all_ended&.close
      cancel_tasks(nil) if @owner.nil? && !@tasks.empty?
    end

    def remove(task)
      return unless @tasks.delete(task)

      @background -= 1 if task.background?
      @scheduler.scopes.delete(self) if @tasks.empty? && @resources.nil? && @failures.empty? && !unheard?
    end

    # The end of background tasks is awaited once they have been cancelled.
    def all_ended?
      @tasks.size <= (@state == :open ? @background : 0)
    end

    def supervise
      @in_block = true
      value = yield
      outlast_tasks
      left = true
      leave(nil) if runs_here?
      value
    rescue Exception => e # rubocop:disable Lint/RescueException -- the tasks must end before it goes on
      raise if left || !runs_here? # the tasks of a parent process never run in the child of a fork

      left = true
      leave(e)
    ensure
      leave(nil) unless left || !runs_here? # a jump leaves the block, or the owner is being killed
    end

    # Ends the tasks, then raises the scope's error; as in an ensure block it takes the place of a jump.
    #
    # @param raised [Exception, nil] the error of the owner's block
    # @return [void] if no error is left to raise
    def leave(raised)
      @in_block = false
      return if raised.nil? && @tasks.empty? && @failures.empty? && @resources.nil?

      before = failure
      note_cancel(raised)
      raised_meanwhile = end_tasks(raised)
      closing = close_resources
      return TaskFailure.leave(raised) if raised && thread_ends?

      error = leaving(before, raised, raised_meanwhile) || closing.first
      raise_with_failures(error, [raised, *raised_meanwhile], closing) if error && !thread_ends?
    ensure
      close
    end

    # Is the thread being killed? A raised error would keep it alive.
    def thread_ends? = Thread.current.status == "aborting"
  end
end
