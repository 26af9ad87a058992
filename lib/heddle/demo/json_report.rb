# frozen_string_literal: true

require "json"

module Heddle
  module Demo
    # The result for programs: one line of JSON. All rates are in requests per second.
    class JSONReport
      # @param result [Result]
      def initialize(result)
        @result = result
      end

      # @return [String]
      def to_s
        JSON.generate(
          ruby: RUBY_VERSION, yjit: System.yjit?, backend: @result.backend,
          requests: @result.settings.requests, processes: @result.settings.processes,
          rows: @result.columns.map { |column| row(column) },
          slow: slow, requests_made: @result.requests, errors: @result.errors
        )
      end

      private

      def row(column)
        row = { delay_ms: column.delay_ms, blocking: rate(column.blocking), threads: rate(column.threads),
                heddle: rate(column.heddle) }
        row[:heddle_processes] = rate(column.processes) if column.processes
        row.merge(blocking_extrapolated: column.blocking.extrapolated?, threads_limit: column.threads.limit,
                  errors: column.measurements.sum(&:error_count))
      end

      def slow
        slow = @result.slow
        return unless slow

        { requests: slow.requests, delay_ms: slow.delay_ms, heddle_seconds: slow.measurement.seconds.round(3),
          blocking_seconds_extrapolated: slow.blocking_seconds.round(3) }
      end

      def rate(measurement)
        measurement.rate.round(1)
      end
    end
  end
end
