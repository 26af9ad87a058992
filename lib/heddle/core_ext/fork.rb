# frozen_string_literal: true

module Heddle
  using Internal

  module CoreExt
    # The child of a fork has no scheduler, as Ruby 4.0 sees to by itself: it may block, and start its own Heddle.
    module Fork
      def _fork
        pid = __heddle__fork
        Fork.forget_scheduler if pid.zero?
        pid
      end

      # Ruby's own does not call _fork.
      def daemon(...)
        result = __heddle_daemon(...)
        Fork.forget_scheduler
        result
      end

      def self.forget_scheduler
        Fiber.set_scheduler(nil) if Scheduler.of_thread
      end
    end
  end
end
