# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  class Scope
    # Handles the errors of a scope. Each failure of a task leaves the scope in one of three ways: it is raised, or
    # attached to the error that is raised, or reported if no error is raised. Failures of isolated tasks whose value
    # nobody requests are reported.
    module Failing
      # Errors that are meant for more than the scope: they are raised first, whatever else has failed.
      GO_FIRST = [*FOR_THE_PROGRAM, Deadlock, ::Timeout::ExitException].freeze
      # Seconds in which somebody may request the value of an isolated task that has failed.
      REPORTED_AFTER = 1
      private_constant :GO_FIRST, :REPORTED_AFTER

      private

      def note_failure(task)
        return ErrorReport.print(task.failure, task) unless open? # its owner was killed

        @failures << task unless @failures.last.equal?(task)
        return if @pending

        cancel_tasks(task.failure, but: task) unless @all_cancelled
        raise_in_owner(task.failure) if @in_block
      end

      def raise_in_owner(error)
        @pending = Cancelled.new("a task of the scope failed: #{Wording.of(error)}", reason: error)
        @scheduler.interrupt_chain(@owner, @root, @pending, @number)
      end

      # Chooses the error that the scope raises: an error that was raised while it ended; else the error of a task that
      # failed before the owner's block raised its own, which is a consequence then; else the error of the block, unless
      # it is only a cancel.
      #
      # @param before [Exception, nil] the failure of a task when the block was left
      # @param raised [Exception, nil] the error of the block
      # @param raised_meanwhile [Array<Exception>] the errors that were raised in the owner since then
      # @return [Exception, nil]
      def leaving(before, raised, raised_meanwhile)
        return raised_meanwhile.last unless raised_meanwhile.empty?

        before = nil if GO_FIRST.any? { |kind| raised.is_a?(kind) }
        before || (raised unless own_cancel?(raised)) || failure || (raised unless raised.equal?(@last_pending))
      end

      # Raises the error with its own cause: neither the owner's current error nor its cancel is a cause.
      #
      # @param own [Array<Exception, nil>] the errors that were raised in the owner
      # @param closing [Array<Exception>] the errors that were raised as the resources were closed
      def raise_with_failures(error, own, closing)
        by_owner = own.any? { |one| error.equal?(one) }
        TaskFailure.end_scope(error, caller, own: by_owner) unless error.is_a?(Cancelled)
        attach_failures(error, own + closing)
        TaskFailure.leave(error)
      end

      # Attaches the other errors. A cancel carries none, because it ends its task in silence.
      #
      # @param others [Array<Exception, nil>] the other errors, beside the failures of tasks
      # @return [nil]
      def attach_failures(error, others)
        failed = @failures
        @failures = []
        others = failed.map(&:failure) + others.reject { |other| other.nil? || own_cancel?(other) }
        others = TaskFailure.attach(error, others) unless own_cancel?(error)
        ErrorReport.print_all(others, failed)
        nil
      end

      # Reports failures that no raised error can carry: the thread is being killed, or the owner never comes back to
      # the scope.
      def report_failures_left
        return if @failures.empty?

        ErrorReport.in_full do
          while (task = @failures.shift)
            ErrorReport.print(task.failure, task)
          end
        end
      end

      # Has an isolated task failed, and is this not reported yet?
      def unheard? = !@unheard.nil? && !@unheard.empty?

      # Reports it after a while, if nobody has asked for the value until then; or when the scope is closed.
      def note_unheard(task)
        return ErrorReport.print(task.error, task) unless open? # its owner was killed, or has left it

        (@unheard ||= []) << [task, Clock.now + REPORTED_AFTER]
        report_later if @state == :open && !@reporter&.alive?
      end

      def report_later
        @reporter = Task.new(self, "reports of isolated tasks", true, false)
        start_as_it_is(@reporter, []) do
          while unheard?
            left = @unheard.first.last - Clock.now
            sleep(left) if left.positive?
            report_first
          end
        end
      rescue FiberError
        nil # Ruby has no stack for it
      end

      def report_first
        task, = @unheard.shift
        ErrorReport.print(task.error, task) if task&.unheard?
      end

      # A cancel that has come meanwhile is raised here, unless another error is on its way.
      def report_unheard
        return unless unheard?

        ErrorReport.in_full { report_first while unheard? }
        @scheduler.raise_pending if own_error.nil?
      end
    end
    private_constant :Failing
  end
end
