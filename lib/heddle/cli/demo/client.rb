# frozen_string_literal: true

module Heddle
  module CLI
    class Demo
      # Makes requests in one of three styles, in a process of its own, and measures the time.
      class Client
        # Seconds that the blocking style may take: it is measured on the number of requests that fit in.
        SAMPLE_SECONDS = 1.0

        # The number of different errors that are counted separately.
        KINDS_MAX = 20

        # @param limit [Integer, nil] the largest number of threads or fibers at once; nil: one for each request
        def initialize(target, limit: nil)
          @target = target
          @limit = limit
          @made = 0
          @running = []
          @errors = Hash.new(0)
          @lock = Mutex.new
        end

        # @return [Hash] when it started and ended, how many requests were made (fewer than asked for if blocking took
        #   too long), how many went wrong and how; or the number of threads or fibers that existed when the system
        #   refused more
        def measure(style, delay_ms, requests)
          GC.start
          started = now
          send(style, requests) { |number| request(delay_ms, number) }
          { started:, ended: now, made: @made, errors: @errors, backend: @backend }
        rescue ThreadError, FiberError
          { full: @running.size }
        end

        private

        # The three styles. Each yields the numbers 0...count, one for each request, and returns when all requests are
        # done. This is all that differs between the rows of the table. Makes one request after another.
        def blocking(count)
          stop = now + SAMPLE_SECONDS
          while @made < count && (@made.zero? || now <= stop)
            yield @made
            @made += 1
          end
        end

        # Makes each request in a thread.
        def threads(count)
          start(count) { |number| Thread.new { yield number } }
        end

        # Makes each request in a fiber.
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
end
