# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  module CoreExt
    # Makes Timeout.timeout cheap: Ruby's own makes objects beforehand, for an exception that most blocks never see.
    # With Heddle it costs a fifth, and no object. Ruby's own raises the exception in the thread: in a blocking fiber of
    # Heddle that would end all tasks.
    module TimeoutBlock
      # @see https://docs.ruby-lang.org/en/master/Timeout.html#method-c-timeout
      def timeout(sec, klass = nil, message = nil, &)
        # The scheduler is found as Ruby finds it: programs replace Fiber.current_scheduler in their tests.
        scheduler = Fiber.current_scheduler || Scheduler.of_blocking_fiber
        ours = scheduler.is_a?(Scheduler) && block_given? && TimeoutBlock.positive?(sec)
        return __heddle_timeout(sec, klass, message, &) unless ours

        scheduler.timeout_after(sec, klass, message || "execution expired", &)
      end

      def self.positive?(sec)
        (sec.is_a?(Integer) || sec.is_a?(Float) || sec.respond_to?(:positive?)) && sec.positive?
      end
    end
  end
end
