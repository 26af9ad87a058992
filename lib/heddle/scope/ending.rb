# frozen_string_literal: true

module Heddle
  using Internal

  class Scope
    # How a scope ends: its tasks are cancelled and waited for. Tasks that their ensure clauses start have the grace
    # period to end. A task that still runs then is cancelled once more, wherever it waits; after another grace period
    # it is killed. So nothing hangs, whatever code cleans up. The owner is treated in this way, too, while it is in its
    # block.
    module Ending
      # The smallest number of seconds between the last cancel and the kill, and between two checks after it.
      PAUSE = 0.05
      private_constant :PAUSE

      private

      # A task that is started later is cancelled when it starts. An interrupt may end the call, which is then called
      # again.
      #
      # @param but [Heddle::Task, nil] this task is not cancelled, because it is about to end by itself
      def cancel_tasks(reason, but: nil)
        if @state == :open
          @state = :ending
          @reason = reason
          @grace_ends = Clock.now + @grace
        end
        @tasks.keys.each { |task| cancel_task(task) unless task.equal?(but) }
        @all_cancelled = true
      end

      # A cancel of the owner passes its own reason on.
      def cancel_task(task, reason = @reason)
        return if task.cleans_up_after?(reason)

        task.cancel_once(own_cancel?(reason) ? reason.reason : reason)
      end

      # Cancels the tasks and waits for them. An exception that is raised in the owner meanwhile is kept until the tasks
      # have ended, also one that the shield does not hold back (Fiber#raise, a run that ends). An exception for the
      # thread or the program is raised at once, and the tasks end without the owner (see outlast_left).
      #
      # @return [Array<Exception>] the exceptions that were raised here meanwhile, without cancels of the owner
      def end_tasks(reason)
        raised_meanwhile = []
        begin
          cancel_tasks(reason)
          @grace_ends = Clock.now if hurries?(reason) && !@grace_over
          @scheduler.shield(SHIELDED) { outlast_grace until @tasks.empty? } unless @tasks.empty?
        rescue Exception => e # rubocop:disable Lint/RescueException -- the tasks must end before it goes on
          hurry_on(e, [reason, *raised_meanwhile]) if must_not_wait?(e)
          own_cancel?(e) ? note_cancel(e) : raised_meanwhile << e
          retry
        end
        raised_meanwhile
      end

      # Raises it. After a second Ctrl-C, the tasks have no time left to clean up, also those of the scopes around it.
      def hurry_on(error, others)
        reason = others.first || @reason
        if reason && must_not_wait?(reason)
          @scheduler.hurrying = error
          @grace_ends = Clock.now unless @grace_over
        end
        attach_failures(error, others)
        raise error
      end

      def hurries?(error) = !error.nil? && error.equal?(@scheduler.hurrying)

      def must_not_wait?(error)
        [*FOR_THE_PROGRAM, Deadlock].any? { |kind| error.is_a?(kind) } || @scheduler.for_the_thread?(error) ||
          error.class.name == "fatal" # rubocop:disable Style/ClassEqualityComparison -- it has no constant
      end

      # Is it a cancel of the owner, and not the error that has ended another task?
      def own_cancel?(error) = error.is_a?(Cancelled) && error.meant_for?(@task)

      # Records a cancel of the owner that does not come from this scope. If the owner's grace period is over, the grace
      # period of its tasks is over, too.
      def note_cancel(error)
        return if !own_cancel?(error) || error.equal?(@pending) || error.equal?(@last_pending)

        @cancelled = error
        @grace_ends = Clock.now if error.last? && @grace_ends && !@grace_over
      end

      # @return [Boolean] have the tasks ended?
      def wait_for_tasks(timeout = nil)
        @all_ended = Completion.new("the tasks of its scope", awaited: self)
        @all_ended.wait(@scheduler, timeout) unless all_ended?
        all_ended?
      end

      def outlast_grace
        return wait_for_tasks unless @grace_ends.finite?
        return if wait_for_tasks([@grace_ends - Clock.now, 0].max) || Clock.now < @grace_ends

        @tasks.keys.each { |task| @grace_over ? task.kill(@grace) : task.cancel_at_last(@grace, @reason) }
        @grace_ends = Clock.now + (@grace_over ? PAUSE : [@grace, PAUSE].max)
        @grace_over = true
      end

      # Ends the remaining tasks when the owner does not wait for them, because an exception for the thread was raised
      # meanwhile. They still have their grace period, and the run waits for them.
      def outlast_left
        return if @tasks.empty? || thread_ends?

        @grace_ends ||= Clock.now + @grace
        cancel_tasks(nil)
        return unless @grace_ends.finite?

        @scheduler.hold_back(SHIELDED) { @scheduler.fiber { outlast_without_owner } }
      rescue FiberError
        nil # Ruby has no stack for it
      end

      # The end of the run cancels all fibers, and this one, too.
      def outlast_without_owner
        outlast_grace until @tasks.empty?
      rescue Cancelled
        retry
      end

      # Watches the owner while it is in its block and a task has failed: its ensure clauses have the grace period, too.
      def watch_owner
        return if @watch || @grace.infinite? || abandoned?

        @watch = Thread::Queue.new
        @watcher = @scheduler.fiber { outlast_owner(@watch) }
      rescue FiberError
        nil # Ruby has no stack for it
      end

      # The owner of a run is the program: it is not killed.
      def outlast_owner(watch)
        pause = [@grace, PAUSE].max
        watch.pop(timeout: @grace)
        until watch.closed? || abandoned?
          task = @task if @last_pending && !@task&.fiber.equal?(@scheduler.main_fiber)
          task ? task.kill(@grace) : force_owner
          watch.pop(timeout: pause)
        end
      end

      def force_owner
        @last_pending = Cancelled.at_last(@grace, @reason)
        @scheduler.force(@owner, @last_pending)
      end

      # Closes the resources of the scope, in a task with a grace period of its own, because a close may hang.
      #
      # @return [Array<Exception>] the errors that were raised
      def close_resources
        return [] unless @resources

        errors = []
        return close_each(@resources, errors) && errors if @owner.nil?

        closer = Task.new(self, "the end of a scope", false, true)
        closer.asked!
        closer.started_amid(nil, true)
        @grace_ends = Clock.now + @grace
        @grace_over = false
        @scheduler.hold_back(SHIELDED) { start_as_it_is(closer, []) { close_each(@resources, errors) } }
        raised_meanwhile = end_tasks(nil)
        errors << closer.failure unless closer.failure.nil? || closer.cancelled?
        errors + raised_meanwhile
      end

      def close_each(resources, errors)
        while (resource, = resources.shift)
          begin
            resource.scope_ended
          rescue StandardError => e
            errors << e
          end
        end
        errors
      ensure
        close_each(resources, errors) unless resources.empty? # an error of another kind than StandardError
      end

      # Waits for the tasks. Background tasks end with the others.
      def outlast_tasks
        wait_for_tasks until @state == :ending || all_ended? || !runs_here?
        return unless @failures.empty? && @background.positive? && runs_here?

        # This includes tasks that were started to clean up after the cancel of another task.
        @tasks.keys.each { |task| task.cancel_once(nil) }
      end

      def withdraw(error)
        [@owner, @root].each { |fiber| @scheduler.withdraw(fiber, error) } if error
      end

      def close
        @state = :ended
        @watch&.close
        @scheduler.scopes.delete(self) if @tasks.empty?
        withdraw(@pending)
        withdraw(@last_pending)
        # The failure of a task is raised first; if the owner was cancelled meanwhile, the cancel is raised at its next
        # wait.
        @scheduler.put_back(@cancelled) if @cancelled && !@cancelled.equal?($!)
        @owner = @root = @watcher = nil # nothing else keeps the stack of the owner
        return unless runs_here?

        outlast_left
        report_failures_left
        report_unheard
      end
    end
    private_constant :Ending
  end
end
