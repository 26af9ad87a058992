# frozen_string_literal: true

require_relative "internal/ruby_features"
require_relative "scheduler/no_stack"

# Ruby warns at the first IO::Buffer of a process, also when it makes the buffer itself to call io_read. So the first
# one is made here, in silence.
begin
  experimental = Warning[:experimental]
  Warning[:experimental] = false
  IO::Buffer.new(1).free
ensure
  Warning[:experimental] = experimental
end

module Heddle
  # A complete Fiber::Scheduler. The hooks are C methods (ext/heddle/hooks); the methods in this file need no speed.
  #
  #   Fiber.set_scheduler(Heddle::Scheduler.new)
  #   Fiber.schedule { ... }
  #
  # @see https://docs.ruby-lang.org/en/master/Fiber/Scheduler.html
  class Scheduler
    # Sets a scheduler on this thread, runs the block under it, and removes it again.
    #
    # @param backend [String, Symbol, nil] "uring", "epoll", "kqueue" or "poll"; nil: HEDDLE_BACKEND, else the best that
    #   this machine offers
    # @param grace [Numeric, nil] see Heddle.run
    # @param time_slice [Numeric, false, nil] see Heddle.run
    # @return [Object] the value of the block
    # @raise [ArgumentError] without a block, or if the backend is unknown
    def self.run(backend: nil, grace: nil, time_slice: nil, &)
      Check.refuse("Heddle::Scheduler.run needs a block") unless block_given?

      scheduler = new(backend:, time_slice:)
      scheduler.send(:keep_backend) # another run is likely to follow on this thread
      Fiber.set_scheduler(scheduler)
      begin
        scheduler.run_main(grace:, &)
      ensure
        Fiber.set_scheduler(nil)
      end
    end

    # Counts the Ruby threads for calls that would block, and the calls that wait for a thread.
    def self.pool_counts = BlockingPool.counts
    private_class_method :pool_counts

    # Ends Heddle's threads when the last scheduler of a Ractor has closed, because the Ractor may be about to end. Ruby
    # 3.3 and 3.4 may hang when a Ractor ends in which threads still wait. New threads start when they are needed.
    def self.end_threads
      return if Dump.schedulers.keys.any? { |one| !one.closed? }

      ours = [TIMEOUTS_THREAD_NAME, Stalls::THREAD_NAME, BlockingPool::THREAD_NAME]
      Thread.list.select { |thread| ours.include?(thread.name) }.each(&:kill).each(&:join)
    end
    private_class_method :end_threads

    # @param backend [String, Symbol, nil] "uring", "epoll", "kqueue" or "poll"; nil: HEDDLE_BACKEND, else the best that
    #   this machine offers
    # @param time_slice [Numeric, false, nil] see Heddle.run
    # @raise [ArgumentError] if the backend is unknown
    # @raise [Heddle::Error] if this machine does not offer the backend
    def initialize(backend: nil, time_slice: nil)
      choose(backend)
      CoreExt.put_in_place
      @scopes = {}.compare_by_identity
      @left = {}
      @spawn_hooks = SpawnHook.all
      Dump.schedulers[self] = true
      Stalls.watch(self) if Stalls::LIMIT
      TimeSlices.begin(self, time_slice)
    end

    # @return [Array<Heddle::Task>] the tasks that have not ended
    def tasks
      [@main, *scopes.keys.flat_map(&:tasks)].compact.reject(&:finished?)
    end

    # Runs the block in the calling fiber, in a scope of its own, and then waits until the plain fibers have ended, too.
    # When the block is left by an exception (Ctrl-C, exit, Thread#raise, Thread#kill among them), by break, return or
    # throw, the other fibers are cancelled: their ensure blocks run.
    #
    # @param grace [Numeric, nil] see Heddle.run
    # @return [Object] the value of the block
    # @raise [ArgumentError] without a block
    # @raise [Heddle::Error] if it is running already
    def run_main(grace: nil, &)
      Check.refuse("Heddle::Scheduler#run_main needs a block") unless block_given?
      raise Error, "the scheduler is running already" unless outside?

      @runs_main = true
      value = turn_until_ended(grace, &)
      succeeded = true
      value
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      raised = e
      raise
    ensure
      cancel_all unless succeeded
      keep_failure(raised) if raised
      @runs_main = false
    end

    # Runs a blocking operation on a pool thread while the fiber is parked (3.4: a Proc, 4.0: a BlockingOperation).
    #
    # @param work [#call]
    # @return [Object] what the operation returns
    def blocking_operation_wait(work)
      if inline? # Ruby does it in this fiber, by itself or here; a signal handler that runs then may wait
        return RubyFeatures::UNCALLED_OPERATIONS_ARE_DONE ? nil : Fiber.blocking { work.call }
      end

      value = nil
      offload(-> { -errno_of(-> { value = work.call }) }, whole: true)
      value
    end

    # Raises Heddle::Cancelled in every task and fiber, once, and runs them to their ends: their ensure blocks run, and
    # may wait. Fiber#kill would interrupt each of those waits again. Tasks are cancelled as tasks, because their scopes
    # are about to cancel them, and a second exception would be raised in an ensure block. No Thread.handle_interrupt
    # delays it: a fiber that waits there for ever would keep the thread from ending. For the same reason fibers that
    # rescue even the exception at the end of their grace period are killed.
    #
    # @return [void]
    def cancel_all
      return if closed?
      raise Error, "the scheduler is running already" if inside?

      tasks = self.tasks
      others = waits.map { |wait| wait[:root] }.uniq - tasks.map(&:fiber)
      tasks.each { |task| task.cancel_once(nil) }
      others.each { |fiber| interrupt(fiber, Cancelled.of_the_end) }
      outlast_masks
      without_masks do
        kill_late if size.positive?
        run
      end
    end

    # The number of times that #end_fibers raises an exception in a fiber that waits in its ensure blocks.
    EXCEPTIONS_MAX = 1000
    private_constant :EXCEPTIONS_MAX, :TIMEOUTS_THREAD_NAME

    # A mask that delays nothing.
    NO_MASK = {}.freeze

    # Seconds between two checks whether the masks, or the fibers, have ended.
    LOOKED_AT = 0.005
    private_constant :NO_MASK, :LOOKED_AT

    # Refuses a call that the gem async makes to its own schedulers.
    #
    # @private
    # @raise [Heddle::Error]
    def add_child(*)
      raise Error, "Async { } and Sync { } cannot run on the thread of Heddle.run, for async has a scheduler of its " \
                   "own: require \"heddle/adapters/async\", and they run on other threads"
    end

    # @private The open scopes, and the hooks of Heddle.on_spawn.
    attr_reader :scopes, :spawn_hooks

    # @private The exception that has come when a scope was ending because of another one for the thread.
    attr_accessor :hurrying

    # @return [String]
    def inspect
      "#<#{self.class} #{backend} #{closed? ? "closed" : "#{size} fibers"}>"
    end

    private

    # Chooses the backend. The error quotes the name that the user has written.
    def choose(backend)
      choose_backend(named(backend || ENV.fetch("HEDDLE_BACKEND", nil)), named(ENV.fetch("HEDDLE_CALLS", nil)))
    rescue ArgumentError => e
      raise if backend

      raise ArgumentError, e.message.sub(/\Abackend:/, "HEDDLE_BACKEND:")
    end

    def named(value) = value&.to_s&.then { |name| name unless name.empty? }

    # The tasks that other threads have left here to be started, the first one first.
    attr_reader :left

    # Starts them. The loop calls it where signals are handled.
    #
    # @param idle [Boolean] does home only wait for the other fibers? If these are tasks of abandoned scopes in a run,
    #   the tasks are cancelled. A plain scheduler runs all fibers to their ends.
    def start_left(idle)
      @left.shift&.first&.start_late until @left.empty?
      AbandonedScopes.end_in(self) if idle && @runs_main
    end

    # The scope of tasks that plain fibers spawn after their scopes have ended; nil when no Heddle.run waits for them.
    def late_scope
      @late_scope ||= Scope.new(nil, false) if @runs_main
    end

    # Called when the scheduler is closed.
    def report_abandoned = scopes.empty? || scopes.keys.each(&:report_abandoned)

    def grace = @grace || Scope::GRACE

    # Raises what is pending in the current fiber, unless a mask delays it.
    def raise_pending = shield(NO_MASK) { nil }

    # The fiber that a Thread#wakeup wakes.
    def main_fiber = @main&.fiber

    # Does the thread's own code run, outside of the scheduler's loop and of its fibers?
    def outside?
      !inside? && (@main.nil? || @main.finished?)
    end

    def turn_until_ended(grace, &)
      @grace = grace if grace
      @main = main = Task.new(nil, "main", false, false)
      value = if FiberInsides.can_unblock?
                run_at_home(main) { main.stand_for_block { enter_main_scope(main, grace, &) } }
              else
                run_in_own_fiber(main, grace, &)
              end
      run unless size.zero?
      @late_scope&.finish
      value
    end

    def enter_main_scope(main, grace, &) = Scope.new(grace, true).enter_main(main, &)

    # Where the fiber of the caller has to stay blocking, the block gets a fiber of its own.
    def run_in_own_fiber(main, grace, &)
      home = Fiber.current
      fiber { execute_main(main, home) { enter_main_scope(main, grace, &) } }
      run until main.finished?
      leave_by(main.error) if main.error
      main.value
    end

    # Records errors that were raised while the tasks ended because of this exception, which came from outside.
    def keep_failure(raised)
      error = @main&.failure
      return if error.nil? || error.is_a?(Cancelled) || error.equal?(raised)

      others = error.is_a?(TaskFailure) ? [error, *error.suppressed] : [error]
      ErrorReport.print_all(TaskFailure.attach(raised, others))
    end

    def leave_by(error)
      TaskFailure.end_scope(error, caller) unless error.is_a?(Cancelled)
      TaskFailure.leave(error)
    end

    def execute_main(main, home, &)
      begin
        main.execute(&)
      rescue Exception # rubocop:disable Lint/RescueException -- the child of a fork: +main+ has it for +home+
        raise if Fiber.scheduler.equal?(self)
      end
      return stop if Fiber.scheduler.equal?(self)

      go_on_in_child(home)
    end

    # Makes the scheduler go on in the child of a fork, where the fiber that has forked is the root fiber, to which Ruby
    # returns whenever another one ends.
    def go_on_in_child(home)
      loop do
        [*last_homes, home].find { |fiber| fiber&.alive? }.transfer
      end
    end

    # If a mask exists, runs until all masks have ended or the grace period is over.
    def outlast_masks
      return unless masked?

      ends = Clock.now + grace
      fiber do
        kernel_sleep(LOOKED_AT) while masked? && size.positive? && Clock.now < ends
        stop if masked?
      end
      run
    end

    # Starts a fiber that waits until the others have ended. It kills the remaining fibers after twice the grace period:
    # one for their ensure blocks, and one after the exception that was raised at the end of the first.
    def kill_late
      began = Clock.now
      left = -> { began + (2 * [grace, *scopes.keys.map(&:grace)].max) - Clock.now }
      return unless left.call.finite?

      fiber do
        @main&.wait(left.call)
        kernel_sleep(LOOKED_AT) until ended_but_for_home? || !left.call.positive?
        without_masks { kill_fibers }
      end
    end

    # Kills the fibers except home, which waits for the others and ends by itself.
    def kill_fibers
      until ended_but_for_home?
        fibers_but_for_home.each { |fiber| kill_fiber(fiber) }
        kernel_sleep(LOOKED_AT)
      end
    end

    # Kills a fiber, which ends when it is switched to. If it first waits in an ensure clause, the next call ends that
    # wait.
    def kill_fiber(fiber)
      return unless fiber.alive?

      fiber.kill || fiber.raise(Cancelled.new("the fiber was killed"))
    end

    def fibers_but_for_home = waits.reject { |wait| home?(wait[:root]) }.map { |wait| wait[:fiber] }.uniq

    def ended_but_for_home? = waits.all? { |wait| home?(wait[:root]) }

    # Is the exception meant for the thread? Without one: is the thread being killed? No task delays it for ever.
    def for_the_thread?(error)
      error ? error.is_a?(SignalException) || sent_to_thread?(error) : Thread.current.status == "aborting"
    end

    # Ends the fibers when the thread was interrupted once more while they were ending: now exceptions are raised in
    # them wherever they wait, until none is left. They cannot be abandoned: the data of a fiber that Ruby and the
    # workers use lies on its stack.
    def end_fibers
      Thread.handle_interrupt(Object => :never) do
        without_masks do
          EXCEPTIONS_MAX.times do
            waits.each { |wait| force(wait[:root], Cancelled.new("the scheduler has ended")) }
            break if size.zero?

            kernel_sleep(0.001)
          end
        end
      end
    end

    def offload(work, **)
      return Fiber.blocking { work.call } if in_handler? # a handler may wait for no thread; plain Ruby does so, too

      open
      BlockingPool.current.run(work, **)
    end

    # See Heddle.offload.
    def offload_block(block, **)
      storage = BlockingPool.storage_inside
      work = SpawnHook.wrap_offload(block)
      value, error = offload(-> { outcome_of(work, storage) }, name: ["the block of Heddle.offload"], **)
      return value unless error

      TaskFailure.end_scope(error, caller)
      TaskFailure.raise_again(error)
    end

    # Runs the block on a thread of the pool.
    #
    # @return [Array(Object, Exception)] the value of a block of the program, or nil and its error
    def outcome_of(block, storage)
      work = Fiber.new(blocking: true, storage:) do
        [block.call, nil]
      rescue BlockingJob::Stop
        raise # the operation is no longer wanted
      rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised in the task
        [nil, e]
      end
      outcome = work.resume
      outcome = work.raise(FiberError, "attempt to yield out of the block of Heddle.offload") while work.alive?
      outcome
    end

    # Raises Heddle::Deadlock unless another thread may wake the fibers of this scheduler. It is never raised where
    # Ruby's own check of threads would let them wait on.
    def check_deadlock
      return if Thread.ignore_deadlock || woken_by_signal? || !others_stuck?

      raise Deadlock, "every fiber waits for another one, and nothing can wake them\n#{Dump.new(self).text}"
    end

    # Makes an error for each fiber of a circle, in which each one waits for the lock that the next one holds. No thread
    # and no signal can release it.
    #
    # @param members [Array<Array(Fiber, Fiber, Mutex)>] the fiber, its root, the lock
    # @return [Array<Deadlock>]
    def lock_circle_errors(members)
      return [] if Thread.ignore_deadlock

      text = Dump.new(self).text(members.map { |_, root,| root })
      members.map { Deadlock.new("#{members.size} tasks wait for each other's locks in a circle\n#{text}") }
    end

    # Makes errors for tasks that want a lock whose holder waits for their end.
    #
    # @param candidates [Array<Array(Fiber, Fiber, Mutex, Completion)>] the fiber, its root, the lock, the completion
    #   for which its holder waits
    # @return [Array<Deadlock, nil>] nil: the holder waits for something else
    def awaited_waiter_errors(candidates)
      return [] if Thread.ignore_deadlock

      by_fiber = tasks.to_h { |task| [task.fiber, task] }
      candidates.map do |_, root, lock, completion|
        next unless completion.awaits?(by_fiber[root])

        Deadlock.new("the task waits for the lock of #{lock.inspect}, whose holder waits for the task\n" \
                     "#{Dump.new(self).text([root])}")
      end
    end

    # May the handler of a signal wake a fiber? The handlers of the main Ractor can reach no fiber of another one.
    def woken_by_signal?
      Ractor.count == 1 && handles_signals?(Dump.handler)
    end

    # Is no operation under way on a thread of the pool?
    def pool_idle? = BlockingPool.idle?

    # Are all other threads of the program unable to go on?
    def others_stuck?
      idle = [TIMEOUTS_THREAD_NAME, Stalls::THREAD_NAME, *(BlockingPool::THREAD_NAME if BlockingPool.idle?)]
      (Thread.list - [Thread.current]).all? { |thread| idle.include?(thread.name) || stuck?(thread) }
    end

    # Is the thread unable to go on, and has nobody woken it?
    def stuck?(thread) = pinned? && !interrupted?(thread) && waits_for_ever?(thread)
  end
end
