# frozen_string_literal: true

require "timeout"

module Heddle
  module CoreExt
    # Timeout.timeout makes objects beforehand, for the exception that most blocks never see: with Heddle it costs a
    # fifth, and no object.
    module TimeoutBlock
      # @see https://docs.ruby-lang.org/en/master/Timeout.html#method-c-timeout
      def timeout(sec, klass = nil, message = nil, &)
        scheduler = Fiber.current_scheduler
        return super unless block_given? && scheduler.is_a?(Scheduler)
        return super unless sec.is_a?(Integer) || sec.is_a?(Float) || sec.respond_to?(:positive?)
        return super unless sec.positive?

        scheduler.timeout_after(sec, klass, message || "execution expired", &)
      end

      # For `include Timeout`; Ruby 4.0 has that call Timeout.timeout.
      module Included
        include TimeoutBlock

        private :timeout
      end
    end
  end
end

Timeout.singleton_class.prepend(Heddle::CoreExt::TimeoutBlock)
Timeout.prepend(Heddle::CoreExt::TimeoutBlock::Included) if RUBY_VERSION < "4.0"
