# frozen_string_literal: true

require_relative "../heddle"
require "opentelemetry"

module Heddle
  # Gives a task, or a block of Heddle.offload, the OpenTelemetry context of the code that starts it;
  # <tt>require "heddle/opentelemetry"</tt> loads it. So a span that the task begins is a child of the span that was
  # current there, and its requests carry that trace on. OpenTelemetry keeps the context by fiber, and a task is a fiber
  # of its own. It needs the gem opentelemetry-api.
  #
  # @private
  module OpenTelemetry
    class << self
      # @return [void]
      def start
        @start ||= Heddle.on_spawn { around(::OpenTelemetry::Context.current) }.tap do
          SpawnHook.on_offload { around(::OpenTelemetry::Context.current) }
        end
      end

      private

      # @return [Proc, nil] nil: no span is current
      def around(context)
        return if context.equal?(::OpenTelemetry::Context::ROOT)

        ->(work) { ::OpenTelemetry::Context.with_current(context) { work.call } }
      end
    end
  end
  private_constant :OpenTelemetry

  OpenTelemetry.start
end
