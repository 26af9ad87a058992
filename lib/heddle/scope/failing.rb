# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  class Scope
    # What a scope does with errors: the first one ends it and is raised from it, the others are attached to that. Those
    # of isolated tasks that nobody asks for are reported.
    module Failing
      # Are meant for more than the scope: they go first, whatever else has failed.
      GO_FIRST = [*FOR_THE_PROGRAM, Deadlock, ::Timeout::ExitException].freeze
      # Seconds that others have to ask an isolated task that has failed.
      REPORTED_AFTER = 1
      private_constant :GO_FIRST, :REPORTED_AFTER

      private

      def note_failure(task)
        @failures << task
        end_by_failure(task.failure) if @failures.size == 1
      end

      def end_by_failure(error)
        cancel_tasks(error)
        return if @owner.nil?

        @strike ||= Cancelled.new("a task of the scope failed: #{Wording.of(error)}", reason: error)
        @scheduler.interrupt_chain(@owner, @root, @strike, @masks_begun)
      end

      # The task that failed before the owner's block has raised its error, so that this is a consequence.
      def earlier_failure(error)
        failure unless GO_FIRST.any? { |kind| error.is_a?(kind) }
      end

      # With its own cause: what the owner was doing meanwhile, and its cancel, are none.
      # @param frames [Array<String>] where the scope was opened
      # @param raised [Exception, nil] what the owner's block has raised
      def raise_first(error, frames, raised = nil)
        others = [*@failures.map(&:failure), *raised].grep_v(Cancelled)
        TaskFailure.end_scope(error, frames, own: error.equal?(raised)) unless error.is_a?(Cancelled)
        TaskFailure.attach(error, others).each { |other| ErrorReport.print(other) }
        TaskFailure.leave(error)
      end

      # An isolated task is being started: from now on somebody looks after those that fail.
      def report_failures
        @unheard = []
        @unheard_came = Thread::Queue.new # something for each of them
        @reporter = Task.new(self, "reports of isolated tasks", true, false)
        start(@reporter, []) do
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
        report_first until @unheard.nil? || @unheard.empty?
      end
    end
    private_constant :Failing
  end
end
