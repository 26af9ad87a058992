# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  class Scope
    # What a scope does with errors. Each failure of a task leaves the scope by one door: it is raised, or attached to
    # what is raised, or reported if nothing is. Those of isolated tasks that nobody asks for are reported.
    module Failing
      # Are meant for more than the scope: they go first, whatever else has failed.
      GO_FIRST = [*FOR_THE_PROGRAM, Deadlock, ::Timeout::ExitException].freeze
      # Seconds that others have to ask an isolated task that has failed.
      REPORTED_AFTER = 1
      private_constant :GO_FIRST, :REPORTED_AFTER

      private

      def note_failure(task)
        return ErrorReport.print(task.failure, task) unless open? # its owner was killed

        @failures << task unless @failures.last.equal?(task)
        return if @strike

        cancel_tasks(task.failure, but: task)
        strike_owner(task.failure) if @in_block
      end

      def strike_owner(error)
        @strike = Cancelled.new("a task of the scope failed: #{Wording.of(error)}", reason: error)
        @scheduler.interrupt_chain(@owner, @root, @strike, @number)
      end

      # What leaves the scope: what has been raised while it ended; else the task that failed before the owner's block
      # has raised its error, which is a consequence then; else that error, unless it is but a cancel.
      #
      # @param before [Exception, nil] what a task had failed with when the block was left
      # @param raised [Exception, nil] what the block has raised
      # @param struck [Array<Exception>] what was raised in the owner since
      # @return [Exception, nil]
      def leaving(before, raised, struck)
        return struck.last unless struck.empty?

        before = nil if GO_FIRST.any? { |kind| raised.is_a?(kind) }
        before || (raised unless own_cancel?(raised)) || failure || raised
      end

      # With its own cause: what the owner was doing meanwhile, and its cancel, are none.
      #
      # @param own [Array<Exception, nil>] what has been raised in the owner
      # @param closing [Array<Exception>] what has been raised as the resources were closed
      def raise_with_failures(error, own, closing)
        by_owner = own.any? { |one| error.equal?(one) }
        TaskFailure.end_scope(error, caller, own: by_owner) unless error.is_a?(Cancelled)
        attach_failures(error, own + closing)
        TaskFailure.leave(error)
      end

      # A cancel takes nothing along: it ends its task in silence.
      #
      # @param others [Array<Exception, nil>] what else has been raised, beside the failures of tasks
      # @return [nil]
      def attach_failures(error, others)
        others = @failures.map(&:failure) + others.reject { |other| other.nil? || own_cancel?(other) }
        @failures = []
        others = TaskFailure.attach(error, others) unless own_cancel?(error)
        ErrorReport.print_all(others)
        nil
      end

      # Nothing that is raised can take them along: the thread is being killed, or nobody comes back to the scope.
      def report_failures_left
        return if @failures.empty?

        ErrorReport.in_full { ErrorReport.print(@failures.shift.failure) until @failures.empty? }
      end

      # An isolated task is being started: from now on somebody looks after those that fail.
      def report_failures
        @unheard = []
        @unheard_came = Thread::Queue.new # something for each of them
        @reporter = Task.new(self, "reports of isolated tasks", true, false)
        start_as_it_is(@reporter, []) do
          while @unheard_came.pop
            left = @unheard.first.last - Clock.now
            sleep(left) if left.positive?
            report_first
          end
        end
      end

      def note_unheard(task)
        @unheard << [task, Clock.now + REPORTED_AFTER]
        @unheard_came << true
      end

      def report_first
        task, = @unheard.shift
        ErrorReport.print(task.error, task) if task.unheard?
      end

      def report_unheard
        return if @unheard.nil? || @unheard.empty?

        ErrorReport.in_full { report_first until @unheard.empty? }
      end
    end
    private_constant :Failing
  end
end
