# frozen_string_literal: true

module Heddle
  using Internal

  class Stats
    # Measures how long an event (data has arrived, a time is over) has waited until its task ran: since the first use
    # of the scheduler, in seconds. Whenever fibers have run before the loop asks the kernel, the loop records one
    # length: the time since it last asked, or the time for which the first task of the queue has been ready, whichever
    # is longer.
    #
    # The lengths are counted in buckets, four for each power of two. So a quantile may be reported too long by a
    # quarter.
    class Latency
      # @private
      # @param counts [Array<Integer>] the count of each bucket
      # @param sum [Float]
      # @param max [Float]
      def initialize(counts, sum, max)
        @counts = counts.freeze
        @sum = sum
        @max = max
        freeze
      end

      # @return [Float] the sum of all recorded lengths in seconds
      attr_reader :sum

      # @return [Float] the longest length in seconds
      attr_reader :max

      # @return [Integer] how many lengths were recorded
      def count = @counts.sum

      # @return [Float, nil] seconds: half of the lengths were not longer; nil if none was recorded
      def p50 = quantile(0.5)

      # @return [Float, nil] seconds: 99 of 100 lengths were not longer; nil if none was recorded
      def p99 = quantile(0.99)

      # @param share [Numeric] from 0 to 1
      # @return [Float, nil] seconds: this share of the lengths was not longer; nil if none was recorded
      # @raise [ArgumentError] if the share is not such a number
      def quantile(share)
        Check.fraction("share", share)

        wanted = [(share * count).ceil, 1].max
        sum = 0
        bucket = @counts.index { |number| (sum += number) >= wanted }
        [BOUNDS[bucket], @max].min if bucket
      end

      # @return [Hash{Float => Integer}] how many lengths were shorter than each number of seconds: from 16 microseconds
      #   to 17 seconds in steps of four, and Float::INFINITY
      def buckets
        sum = 0
        sums = @counts.map { |number| sum += number }
        STEPS.to_h { |bucket| [BOUNDS[bucket], sums[bucket]] }
      end

      # @private
      # @return [Latency] the sum of both
      def +(other)
        counts, sum, max = other.parts
        Latency.new(@counts.zip(counts).map { |one, another| one + another }, @sum + sum, [@max, max].max)
      end

      # @return [String]
      def inspect
        return "#<#{self.class} of nothing>" if count.zero?

        format("#<%<class>s p50 %<p50>.6f s, p99 %<p99>.6f s, max %<max>.6f s>", class: self.class, p50:, p99:, max:)
      end

      protected

      def parts = [@counts, @sum, @max]

      BOUNDS = Scheduler.latency_bounds.freeze
      # The buckets that end at 2^14, 2^16 ... 2^34 nanoseconds, and the last one.
      STEPS = [*16.step(96, 8), BOUNDS.size - 1].freeze
      private_constant :BOUNDS, :STEPS
    end
  end
end
