# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  module CoreExt
    # Timeout.timeout makes objects beforehand, for the exception that most blocks never see: with Heddle it costs a
    # fifth, and no object. Ruby's own strikes the thread: in a blocking fiber of Heddle's that would end them all.
    module TimeoutBlock
      # @see https://docs.ruby-lang.org/en/master/Timeout.html#method-c-timeout
      def timeout(sec, klass = nil, message = nil, &)
        # Asked as Ruby asks: programs replace Fiber.current_scheduler in their tests.
        scheduler = Fiber.current_scheduler || (blocking = Scheduler.of_blocking_fiber)
        ours = scheduler.is_a?(Scheduler) && block_given? && TimeoutBlock.positive?(sec)
        return __heddle_timeout(sec, klass, message, &) unless ours

        scheduler.timeout_after(sec, klass, message || "execution expired", !blocking.nil?, &)
      end

      def self.positive?(sec)
        (sec.is_a?(Integer) || sec.is_a?(Float) || sec.respond_to?(:positive?)) && sec.positive?
      end
    end
  end
end
