# frozen_string_literal: true

module Heddle
  # What is prepended to Ruby's own classes; see the files in core_ext/.
  module CoreExt
    # The child of a fork has no scheduler, as Ruby 4.0 sees to by itself: it may block, and start its own Heddle.
    module Fork
      # @private
      def _fork
        pid = super
        Fiber.set_scheduler(nil) if pid.zero? && Fiber.scheduler.is_a?(Scheduler)
        pid
      end
    end
  end
end

Process.singleton_class.prepend(Heddle::CoreExt::Fork)
