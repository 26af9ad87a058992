# frozen_string_literal: true

require_relative "../heddle"
require "opentelemetry"

module Heddle
  # Gives a task the OpenTelemetry context of the place where it was spawned; `require "heddle/opentelemetry"` loads it.
  # So a span that the task begins is a child of the span that was current there, and its requests carry that trace on.
  # OpenTelemetry keeps the context by fiber, and a task is a fiber of its own. It needs the gem opentelemetry-api.
  #
  # @private
  module OpenTelemetry
    class << self
      # @return [void]
      def start = @start ||= Heddle.on_spawn { around_task(::OpenTelemetry::Context.current) }

      private

      # @return [Proc, nil] nil: no span is current
      def around_task(context)
        return if context.equal?(::OpenTelemetry::Context::ROOT)

        ->(work) { ::OpenTelemetry::Context.with_current(context) { work.call } }
      end
    end
  end
  private_constant :OpenTelemetry

  OpenTelemetry.start
end
