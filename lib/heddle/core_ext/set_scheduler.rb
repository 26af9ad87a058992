# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # Ruby drops the thread's scheduler also when that refuses to be closed, as a Heddle must that runs. And it does not
    # tell a scheduler that it is set: a fiber that waits outside of Scheduler#run goes on where that was done.
    module SetScheduler
      def set_scheduler(scheduler) # rubocop:disable Naming/AccessorMethodName -- Ruby's own
        if Scheduler.of_thread&.inside?
          raise Error, "Heddle runs on this thread: set another scheduler in a thread of its own, or after Heddle.run"
        end

        __heddle_set_scheduler(scheduler).tap { scheduler.was_set if scheduler.is_a?(Scheduler) }
      end
    end
  end
end
