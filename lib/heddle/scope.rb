# frozen_string_literal: true

require_relative "scope/ending"
require_relative "scope/failing"

module Heddle
  using Internal

  # The lifetime of a group of tasks: Heddle.run and Heddle.scope open one, wait for all its tasks, and cancel them when
  # one fails.
  class Scope
    include Ending
    include Failing

    # Seconds that what cleans up has when a scope ends, if nothing else is said.
    GRACE = 5

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
      # @return [Heddle::Scope, nil] the open one in which this fiber is
      def here = innermost(Fiber.scheduler)

      # @private
      # @return [Heddle::Scope, nil] the innermost open one of this scheduler in which this fiber is, or was made
      def innermost(scheduler)
        scope = Fiber[:heddle_scope]
        task = Task.here
        scope = task.scope if task && !scope&.task.equal?(task) # the one that the task belongs to is its outermost
        scope = scope.outer until scope.nil? || scope.open?
        scope if scope&.scheduler.equal?(scheduler) # (a thread inherits the storage of the fiber that starts it)
      end

      # @private Runs the block in a new scope and waits for the tasks spawned in it.
      # @return [Object] the value of the block
      def open(grace: nil, &) = new(grace, true).enter(&)
    end

    # @private
    # @param grace [Numeric, nil] seconds; nil: those of the scope around it
    # @param owner [Boolean] is there a block that waits for its tasks?
    def initialize(grace = nil, owner = Check.no_new(Scope, "Heddle.scope"))
      @tasks = {}.compare_by_identity
      @background = 0 # how many of them are background tasks
      @scheduler = Fiber.scheduler
      @outer = self.class.innermost(@scheduler)
      @spawn_hooks = @scheduler.spawn_hooks
      @task = Task.here
      @masks_begun = @scheduler.masks_begun # a shield that began later holds its own strike back
      @grace = grace || @outer&.grace || GRACE
      @owner = owner ? Fiber.current : nil
      @root = owner ? @scheduler.root : nil
      @amid = owner ? $! : nil # what its owner is rescuing: a task that is started amid that cleans up nothing of its
      @state = :open # then :ending, when its tasks are cancelled, then :ended
      @reason = nil # the exception for which it ends
      @failures = [] # the tasks that have failed, the first one first
      @unheard = @reporter = nil # isolated tasks that have failed, and who tells of them
      @strike = nil # what is raised in the owner for a task that has failed
      @cancelled = nil # what somebody else has cancelled the owner with
      @grace_ends = nil # when; nil: not yet known, or over
      @given_up = false # its tasks are left to the end of the run
      @all_ended = nil
      @scheduler.scopes[self] = true
    end

    # @private
    attr_reader :scheduler, :outer, :task, :grace

    # @return [Array<Heddle::Task>] those that have not ended
    def tasks
      @tasks.keys - [@reporter]
    end

    # Starts a task in this scope. When the scope is ending already, it is cancelled where it first waits, unless it is
    # started in an ensure clause: then it has the grace period.
    #
    # @param arguments [Array<Object>] what the block gets
    # @param name [String, Symbol, nil] see Heddle.spawn
    # @param background [Boolean] see Heddle.spawn
    # @param isolated [Boolean] see Heddle.spawn
    # @return [Heddle::Task]
    # @raise [Heddle::Error] when the scope has ended, or belongs to another thread
    # @raise [ArgumentError] without a block, or if the name is neither a String nor a Symbol
    def spawn(*arguments, name: nil, background: false, isolated: false, &)
      Check.refuse("Heddle::Scope#spawn needs a block") unless block_given?
      raise Error, "a scope starts its tasks only in the thread that it belongs to" if open? && !runs_here?

      start(Task.new(self, name, background, isolated), arguments, &)
    end

    # @private Starts a task whose failure is its own, and that is in good hands. What the block spawns belongs to it.
    #
    # @param ended [#call, nil] is called when it ends
    def spawn_isolated(name = nil, ended: nil, &block)
      task = Task.new(self, name, false, true)
      task.asked!
      start(task, []) do
        Task.match_apart(block)
        Scope.open(&block)
      ensure
        ended&.call
      end
    end

    # @private The same for a task that is made already.
    def start(task, arguments, &block)
      task.start(arguments, &take_in(task, block))
      cancel(task) if @state == :ending
      task
    ensure
      remove(task) unless task.started? # Ruby had no stack for it
    end

    # @private The same for one that has to wait before it starts.
    def line_up(task, arguments, &block)
      task.line_up(arguments, take_in(task, block))
      cancel(task) if @state == :ending
      task
    end

    # @private
    # @return [Exception, nil] what the first task that failed has raised
    def failure = @failures.first&.failure

    # @private
    # @return [Exception, nil] the same, if somebody has asked for the value of that task
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

    # @private What is closed when all tasks have ended, by its method scope_ended.
    def own(resource) = (@resources ||= {}.compare_by_identity)[resource] = true

    # @private It is closed already.
    def disown(resource) = @resources&.delete(resource)

    # @private Runs the owner's block in it, then waits for the tasks.
    def enter(&)
      outer = Fiber[:heddle_scope]
      Fiber[:heddle_scope] = self
      supervise(&)
    ensure
      Fiber[:heddle_scope] = outer
    end

    # @private The same for the block of a run. (Its scope is the task's: Ruby copies the Fiber storage for each fiber.)
    def enter_main(task, &)
      task.scope = self
      supervise(&)
    end

    # @private A task tells that it has ended, perhaps more than once. The first failure ends the scope.
    def task_ended(task)
      remove(task)
      note_failure(task) if task.fails_scope? && !@failures.include?(task)
      note_unheard(task) if @reporter && task.unheard?
      @all_ended&.close if all_ended?
      cancel_tasks(nil) if @owner.nil? && all_ended? && !@tasks.empty?
    end

    # @private For one without an owner, when all of its tasks have ended.
    def finish
      close_resources(nil) if @resources
      close
      raise_first(failure, caller) unless @failures.empty?
    end

    private

    # @return [Proc] what the task is to do
    def take_in(task, block)
      raise Error, "the scope has ended: its block has returned, and its tasks have ended" unless open?

      unless task.equal?(@reporter)
        block = SpawnHook.wrap(task, block) unless @spawn_hooks.empty?
        error = own_error and task.started_amid(error, @grace_ends)
      end
      report_failures if task.isolated? && !@reporter
      @tasks[task] = true
      @background += 1 if task.background?
      block
    end

    # The exception that is on its way here, if it came after the scope was opened.
    def own_error = ($! unless $!.equal?(@amid))

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
      @failures.empty? ? value : raise_first(failure, caller)
    rescue Exception => e # rubocop:disable Lint/RescueException -- the tasks must end before it goes on
      raise unless runs_here? # the tasks of a parent process never run in the child of a fork

      first = earlier_failure(e)
      note_cancel(e)
      end_tasks(e)
      first ||= failure if e.is_a?(Cancelled)
      raise_first(raised = first || e, caller, e)
    ensure
      # The owner is being killed, or a throw leaves it.
      end_tasks(own_error) unless @tasks.empty? || @given_up || !runs_here?
      begin
        close_resources(raised) if @resources && runs_here?
      ensure
        close
      end
    end

    # Those in the background end with the others.
    def outlast_tasks
      wait_for_tasks until @state == :ending || all_ended? || !runs_here?
      return unless @failures.empty? && @background.positive? && runs_here?

      @tasks.keys.each(&:cancel) # also those that were started to clean up after the cancel of another one
      end_tasks(nil)
    end

    def close
      @state = :ended
      @scheduler.scopes.delete(self)
      [@owner, @root].each { |fiber| @scheduler.withdraw(fiber, @strike) } if @strike
      # The failure of a task goes first; an owner that was cancelled meanwhile hears of it at its next wait.
      @scheduler.interrupt(@owner, @cancelled) if @cancelled && !@cancelled.equal?($!)
      @owner = @root = nil # nothing else keeps the stack of the owner
      report_unheard if runs_here?
    end
  end
end
