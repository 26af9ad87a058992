# frozen_string_literal: true

module Heddle
  using Internal

  class Scope
    # A task that another thread has spawned. The thread of the scope starts it when its loop turns next.
    class ForeignTask < LateTask
      # Starts it in the thread of the scope. Its error, if it cannot start, is its outcome.
      def start_late
        start_from_line
      rescue FiberError => e
        failed = e # Ruby had no stack for it
      ensure
        end_in_line(failed || Cancelled.new("its thread has been interrupted")) unless started?
      end

      private

      def put_in_line
        @scheduler.left[self] = true
        @scheduler.call_loop
      end

      def take_out_of_line = @scheduler.left.delete(self)
    end
    private_constant :ForeignTask
  end
end
