# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # Removes the scheduler in the child of a fork, as Ruby 4.0 does by itself: the child may block, and start its own
    # Heddle. It may also write to an IO to which a task of the parent was writing.
    module Fork
      def _fork
        writers = Scheduler.of_thread&.busy_writers
        pid = __heddle__fork
        Fork.begin_anew(writers) if pid.zero?
        pid
      end

      # Ruby's own daemon does not call _fork.
      def daemon(...)
        writers = Scheduler.of_thread&.busy_writers
        result = __heddle_daemon(...)
        Fork.begin_anew(writers)
        result
      end

      def self.begin_anew(writers)
        writers&.each { |io| Scheduler.forget_writer(io) }
        Fiber.set_scheduler(nil) if Scheduler.of_thread
      end
    end
  end
end
