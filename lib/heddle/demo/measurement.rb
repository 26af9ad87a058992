# frozen_string_literal: true

module Heddle
  module Demo
    # What one or several clients measured at the same time.
    class Measurement
      # @return [String, nil] the backend that Heddle ran on
      attr_reader :backend

      # @return [Hash] how many requests went wrong, by what went wrong
      attr_reader :errors

      # @return [Integer] how many requests were made
      attr_reader :made

      # @return [Float] from the first client's start to the last one's end
      attr_reader :seconds

      # @return [Integer, nil] how many threads or fibers the system carried in one process, nil if as many as asked for
      attr_reader :limit

      # @param answers [Array<Hash>] what Client#measure returned
      # @param asked [Integer] how many requests were asked for
      # @param limit [Integer, nil] see #limit
      def initialize(answers, asked:, limit: nil)
        @asked = asked
        @limit = limit
        @made = answers.sum { |answer| answer[:made] }
        @seconds = answers.map { |answer| answer[:ended] }.max - answers.map { |answer| answer[:started] }.min
        @errors = answers.map { |answer| answer[:errors].transform_keys(&:to_s) }
          .reduce { |sum, errors| sum.merge(errors) { |_, a, b| a + b } }
        @backend = answers.first[:backend]
      end

      # @return [Integer] how many requests went wrong
      def error_count
        errors.values.sum
      end

      # @return [Boolean] whether it was made with a sample of the requests
      def extrapolated?
        made < @asked
      end

      # @return [Float] right answers per second
      def rate
        (made - error_count) / seconds
      end
    end
  end
end
