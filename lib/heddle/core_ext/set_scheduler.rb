# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # Keeps the thread's scheduler when it refuses to be closed, as a running Heddle must. Ruby would drop it. It also
    # notifies a scheduler that it was set, which Ruby does not: a fiber that waits outside of Scheduler#run goes on at
    # the place where the scheduler was set.
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
