# frozen_string_literal: true

module Heddle
  using Internal

  class Scope
    # How a scope ends: its tasks are cancelled and waited for. What their ensure clauses start has the grace period to
    # come to its end. What still runs then is struck once more, wherever it waits, so that nothing hangs.
    module Ending
      private

      def cancel_tasks(reason)
        unless @state == :ending
          @state = :ending
          @reason = reason
          @grace_ends = Clock.now + @grace
        end
        @tasks.keys.each { |task| cancel(task) }
      end

      # (A cancel of the owner's passes its own reason on.)
      def cancel(task)
        task.cancel(@reason.is_a?(Cancelled) ? @reason.reason : @reason) unless task.cleans_up_after?(@reason)
      end

      # What strikes the owner meanwhile (a timeout, Fiber#raise) is raised when the tasks have ended; of several the
      # last one, as what is raised in an ensure block takes the place of what was raised before. What is sent to the
      # thread is raised at once, and the tasks are left to the end of the run.
      def end_tasks(reason)
        struck = nil
        @scheduler.bound_the_end if @scheduler.for_the_thread?(reason)
        begin
          cancel_tasks(reason)
          wait_for_tasks(grace_left) || strike_again until @tasks.empty?
        rescue *FOR_THE_PROGRAM, Deadlock
          @given_up = true
          raise
        rescue Exception => e # rubocop:disable Lint/RescueException
          @given_up = @scheduler.for_the_thread?(e)
          # (The class fatal has no constant.)
          raise if @given_up || e.class.name == "fatal" # rubocop:disable Style/ClassEqualityComparison

          e.is_a?(Cancelled) ? note_cancel(e) : struck = e
          retry
        end
        raise struck if struck
      end

      # A cancel of the owner, which does not come from this scope.
      def note_cancel(error)
        @cancelled = error if error.is_a?(Cancelled) && !error.equal?(@strike) && !error.spent?
      end

      # @return [Boolean] have they ended?
      def wait_for_tasks(timeout = nil)
        @all_ended = Completion.new("the tasks of its scope", awaited: self)
        @all_ended.wait(@scheduler, timeout) unless all_ended?
        all_ended?
      end

      # Seconds, or nil for no limit.
      def grace_left
        [@grace_ends - Clock.now, 0].max if @grace_ends&.finite?
      end

      def strike_again
        return if @grace_ends.nil? || Clock.now < @grace_ends

        @grace_ends = nil
        @tasks.keys.each do |task|
          task.strike(Cancelled.new("the grace period of #{@grace} s is over", reason: @reason))
        end
      end

      # @param raised [Exception, nil] what the scope ends with
      def close_resources(raised)
        errors = []
        while (resource, = @resources.shift)
          begin
            resource.scope_ended
          rescue StandardError => e
            errors << e
          end
        end
        return if errors.empty?

        left = raised.is_a?(Cancelled) ? errors : TaskFailure.attach(raised || errors.first, errors)
        left.each { |error| ErrorReport.print(error) }
        raise errors.first unless raised
      ensure
        close_resources(raised) unless @resources.empty? # one has raised more than a StandardError
      end
    end
    private_constant :Ending
  end
end
