# frozen_string_literal: true

require "json"
require_relative "child"

module Heddle
  module CLI
    class Demo
      # The measurements of one or several clients at the same time.
      # asked, made:: how many requests were asked for, and made: fewer if they were a sample
      # seconds:: from the first client's start to the last one's end
      # errors:: the number of requests that went wrong, by error
      # limit:: how many threads or fibers the system carried in one process, nil if it carried all of them
      # backend:: the backend on which Heddle ran, or nil
      Measurement = Data.define(:asked, :made, :seconds, :errors, :limit, :backend) do
        # @param answers [Array<Hash>] the answers of the clients
        def self.of(answers, asked, limit)
          new(asked:, limit:, made: answers.sum { |answer| answer[:made] }, backend: answers.first[:backend],
              seconds: answers.map { |answer| answer[:ended] }.max - answers.map { |answer| answer[:started] }.min,
              errors: sum_errors(answers.map { |answer| answer[:errors].transform_keys(&:to_s) }))
        end

        # Adds several counts of errors.
        def self.sum_errors(all) = all.reduce { |sum, errors| sum.merge(errors) { |_, a, b| a + b } }

        # Counts the requests that went wrong.
        def error_count = errors.values.sum

        # Was a sample measured?
        def extrapolated? = made < asked

        # Returns the number of right answers per second.
        def rate = (made - error_count) / seconds
      end

      # Everything that a run of the demo measured.
      # columns:: for each column of the table its delay, nil for a server of the user's, and its measurements by kind:
      #           blocking, threads, heddle, and heddle_processes if asked for
      # slow:: the time that Heddle took for a few requests to a slow server, and the time that blocking would take; nil
      #        for a server of the user
      Result = Data.define(:settings, :columns, :slow) do
        # All measurements.
        def measurements = [*columns.flat_map { |_, kinds| kinds.values }, *slow&.fetch(:measurement)]

        # The backend on which Heddle ran.
        def backend = measurements.filter_map(&:backend).first

        # The number of requests that were made.
        def requests = measurements.sum(&:made)

        # The number of requests that went wrong.
        def errors = measurements.sum(&:error_count)

        # For programs: one line of JSON. All rates are in requests per second.
        def to_json(*)
          rows = columns.map do |delay_ms, kinds|
            { delay_ms:, **kinds.transform_values { |measurement| measurement.rate.round(1) },
              blocking_extrapolated: kinds[:blocking].extrapolated?, threads_limit: kinds[:threads].limit,
              errors: kinds.values.sum(&:error_count) }
          end
          JSON.generate(ruby: RUBY_VERSION, yjit: Child.yjit?, backend:, requests: settings.requests,
                        processes: settings.processes, rows:, slow: slow && slow_row, requests_made: requests, errors:)
        end

        private

        def slow_row
          { requests: slow[:measurement].asked, delay_ms: slow[:delay_ms],
            heddle_seconds: slow[:measurement].seconds.round(3),
            blocking_seconds_extrapolated: slow[:blocking_seconds].round(3) }
        end
      end
    end
  end
end
