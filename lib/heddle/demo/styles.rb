# frozen_string_literal: true

module Heddle
  module Demo
    # The three ways to make many requests. Each yields the numbers 0...count, one a request, and returns when all are
    # done. This is all that differs between the rows of the table.
    class Styles
      # Seconds that blocking may take: it is measured on as many requests as fit in.
      SAMPLE_SECONDS = 1.0

      # How many requests were made, less than asked for if they were a sample.
      # @return [Integer]
      attr_reader :made

      # How many threads or fibers the system carried at once, if that was less than asked for; else nil.
      # @return [Integer, nil]
      attr_reader :limit

      def initialize
        @made = 0
        @limit = nil
      end

      # One after another.
      def blocking(count)
        stop = now + SAMPLE_SECONDS
        count.times do |number|
          break if number > 0 && now > stop

          yield number
          @made += 1
        end
      end

      # A thread for each.
      def threads(count)
        start(count) { |number| Thread.new { yield number } }
      end

      # A fiber for each.
      def heddle(count)
        Heddle.run do
          start(count) { |number| Heddle.spawn { yield number } }
        end
      end

      private

      # Where the system gives no further thread or fiber, the next request waits for an earlier one to end.
      def start(count)
        running = []
        count.times do |number|
          running << yield(number)
        rescue ThreadError, FiberError
          running.select!(&:alive?)
          raise if running.empty?

          @limit = [@limit, running.size].compact.min
          running.shift.value
          retry
        end
        running.each(&:value)
        @made = count
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
