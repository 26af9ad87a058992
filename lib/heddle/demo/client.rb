# frozen_string_literal: true

module Heddle
  module Demo
    # Makes requests in one of three styles, in a process of its own, and takes the time.
    class Client
      # Seconds that blocking may take: it is measured on as many requests as fit in.
      SAMPLE_SECONDS = 1.0

      # How many different errors are told apart.
      KINDS_MAX = 20

      # @param limit [Integer, nil] how many threads or fibers to have at once; nil: one for each request
      def initialize(target, limit: nil)
        @target = target
        @limit = limit
        @made = 0
        @running = []
        @errors = Hash.new(0)
        @lock = Mutex.new
      end

      # @return [Hash] when it started and ended, how many requests were made (fewer than asked for if blocking took too
      #   long), how many went wrong and how; or how many threads or fibers there were when the system gave no more
      def measure(style, delay_ms, requests)
        GC.start
        started = now
        send(style, requests) { |number| request(delay_ms, number) }
        { started:, ended: now, made: @made, errors: @errors, backend: @backend }
      rescue ThreadError, FiberError
        { full: @running.size }
      end

      private

      # The three styles. Each yields the numbers 0...count, one a request, and returns when all are done. This is all
      # that differs between the rows of the table. First, one request after another.
      def blocking(count)
        stop = now + SAMPLE_SECONDS
        while @made < count && (@made.zero? || now <= stop)
          yield @made
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
          @backend = Fiber.scheduler.backend
          start(count) { |number| Heddle.spawn { yield number } }
        end
      end

      # At the limit the next request waits for an earlier one to end.
      def start(count)
        count.times do |number|
          @running.shift.value if @limit && @running.size >= @limit
          @running << yield(number)
        end
        @running.each(&:value)
        @made = count
      end

      def request(delay_ms, number)
        mistake = @target.mistake(@target.get(delay_ms, number), delay_ms, number)
        count_error(mistake) if mistake
      rescue StandardError => e
        count_error("#{e.class}: #{e.message.scrub}")
      end

      def count_error(kind)
        @lock.synchronize do
          kind = "others" if @errors.size >= KINDS_MAX && !@errors.key?(kind)
          @errors[kind] += 1
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
