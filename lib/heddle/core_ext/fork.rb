# frozen_string_literal: true

module Heddle
  # What is prepended to Ruby's own classes; see the files in core_ext/.
  module CoreExt
    # The child of a fork has no scheduler, as Ruby 4.0 sees to by itself: it may block, and start its own Heddle.
    module Fork
      # @private
      def _fork
        pid = super
        Fork.forget_scheduler if pid.zero?
        pid
      end

      # Ruby's own does not call _fork.
      #
      # @private
      def daemon(*)
        result = super
        Fork.forget_scheduler
        result
      end

      # @private
      def self.forget_scheduler
        Fiber.set_scheduler(nil) if Fiber.scheduler.is_a?(Scheduler)
      end
    end
  end
end

Process.singleton_class.prepend(Heddle::CoreExt::Fork)
