# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  class Scope
    # How a scope is cut short: by Scope#cancel, or by its deadline. Both raise one exception in the owner, which has a
    # place of its own among the exceptions of the owner (ScopeLimit, in C). The tasks are cancelled like those of a
    # scope that fails.
    module Limited
      private

      # Runs the owner's block in the scope until the limit ends it, also while it waits for the tasks.
      def limited(deadline, softly)
        value = until_cut_short do
          self.deadline = deadline if deadline
          yield(self).tap { outlast_tasks unless @limit.raised }
        end
        @limit.raised ? cut_short(@limit.raised, softly) : value
      end

      # A block that rescues the exception is cut short, too.
      def until_cut_short(&)
        @limit.around(&)
      rescue Cancelled, ::Timeout::ExitException => e
        raise unless e.equal?(@limit.raised)
      end

      # A deadline leaves the scope by its exception. After a cancel, and after a soft deadline, only errors leave it.
      def cut_short(exception, softly)
        @cut_short = true
        TaskFailure.raise_again(exception) unless softly || exception.is_a?(Cancelled)

        cancel_tasks(exception)
        TaskFailure.raise_suppressed(exception)
      end

      # The scope of another thread cancels the tasks that come later by itself, when its owner leaves the block.
      def cancel_all_but(task, exception)
        return tasks.each { |one| cancel_task(one, exception) } unless runs_here?

        cancel_tasks(exception, but: task)
        watch_owner
      end

      # Raises here what the caller has called for, like Task#cancel.
      def raise_own_cancel(task)
        cancel_task(task) if @tasks.key?(task)
        @scheduler.raise_pending if @tasks.key?(task) || Fiber.current.equal?(@owner)
      end
    end
    private_constant :Limited
  end
end
