# frozen_string_literal: true

module Heddle
  module Demo
    # The three ways to make many requests. Each yields the numbers 0...count, one a request, and returns when all are
    # done. This is all that differs between the rows of the table.
    class Styles
      # Seconds that blocking may take: it is measured on as many requests as fit in.
      SAMPLE_SECONDS = 1.0

      # The system gives no further thread or fiber.
      class Full < StandardError
        # @return [Integer] how many it gave
        attr_reader :carried

        def initialize(carried)
          @carried = carried
          super("no more than #{carried} at once")
        end
      end

      # How many requests were made, less than asked for if they were a sample.
      # @return [Integer]
      attr_reader :made

      # @param limit [Integer, nil] how many threads or fibers to have at once; nil: one for each request
      def initialize(limit: nil)
        @limit = limit
        @made = 0
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

      # At the limit the next request waits for an earlier one to end.
      def start(count)
        running = []
        count.times do |number|
          running.shift.value if @limit && running.size >= @limit
          running << yield(number)
        rescue ThreadError, FiberError
          raise Full, running.size
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
