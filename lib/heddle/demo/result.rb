# frozen_string_literal: true

require_relative "measurement"

module Heddle
  module Demo
    # Everything that a run of the demo measured.
    class Result
      # One column of the table: the measurements at one delay, by style. The delay is nil for a server of the user's.
      Column = Data.define(:delay_ms, :blocking, :threads, :heddle, :processes) do
        # @return [Float] how far Heddle is ahead of threads, in per cent
        def advantage
          percent_over(heddle, threads)
        end

        # @return [Float] what further processes add, in per cent
        def gain
          percent_over(processes, heddle)
        end

        # @return [Array<Measurement>] those that were made
        def measurements
          [blocking, threads, heddle, processes].compact
        end

        private

        def percent_over(one, other)
          ((one.rate / other.rate) - 1) * 100
        end
      end

      # A few requests to a slow server: what Heddle took, and what blocking would take.
      Slow = Data.define(:requests, :delay_ms, :measurement, :blocking_seconds)

      # @return [Settings]
      attr_reader :settings

      # @return [Array<Column>]
      attr_reader :columns

      # @return [Slow, nil] nil for a server of the user's
      attr_reader :slow

      def initialize(settings:, columns:, slow:)
        @settings = settings
        @columns = columns
        @slow = slow
      end

      # @return [String] the backend that Heddle ran on
      def backend
        measurements.filter_map(&:backend).first
      end

      # @return [Integer] how many requests were made
      def requests
        measurements.sum(&:made)
      end

      # @return [Integer] how many of them went wrong
      def errors
        measurements.sum(&:error_count)
      end

      # @return [Boolean] whether every answer was right
      def right?
        errors.zero?
      end

      # @return [Array<Measurement>]
      def measurements
        [*columns.flat_map(&:measurements), *slow&.measurement]
      end
    end
  end
end
