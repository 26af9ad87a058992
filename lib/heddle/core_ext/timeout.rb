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
        scheduler = Scheduler.current || (blocking = Scheduler.of_blocking_fiber)
        return __heddle_timeout(sec, klass, message, &) unless scheduler && block_given? && TimeoutBlock.positive?(sec)

        scheduler.timeout_after(sec, klass, message || "execution expired", !blocking.nil?, &)
      end

      def self.positive?(sec)
        (sec.is_a?(Integer) || sec.is_a?(Float) || sec.respond_to?(:positive?)) && sec.positive?
      end
    end
  end
end
