# frozen_string_literal: true

require_relative "../heddle"
require_relative "testing/clock"
require_relative "testing/left_over"
require_relative "testing/minitest"
require_relative "testing/rspec"
require_relative "testing/timed_queues"

module Heddle
  using Internal

  # For the tests of programs: a run with a virtual clock, which jumps to the next deadline when all tasks wait, and
  # with an order of the ready tasks that a seed decides. <tt>require "heddle"</tt> does not load it.
  #
  # @example
  #   require "heddle/testing"
  #
  #   Heddle::Testing.run do |clock|
  #     Heddle.timeout(3600) { sleep 1800 }
  #     clock.now # => 1800.0
  #   end
  module Testing
    # How long the kernel and the other threads of the program may be silent, in seconds, before the clock jumps.
    THRESHOLD = 0.01
    # The largest seed.
    SEEDS = 2**32
    CLOCK = :heddle_testing_clock
    private_constant :SEEDS, :CLOCK

    class << self
      # Runs the block as Heddle.run does, with a virtual clock: sleep, Timeout, deadlines, time limits of queues and of
      # sockets, Heddle.every and Heddle.retry go by it. It begins at 0, and stands still while a task runs. When all
      # tasks wait, it jumps to the next deadline.
      #
      # The clock does not jump while a task waits for something else than other tasks of this run. If the other end of
      # a socket or a pipe is in this process, or another thread of the program does something, the clock jumps when
      # nothing has come for the threshold. If a task waits for a child process, a thread, an offloaded block, a lookup
      # of a name, or a peer in another process, the clock goes on like the machine's until that has come.
      #
      # The seed decides the order of the tasks that are ready at the same time. If the run fails, it is printed.
      # Process.clock_gettime and Time.now do not change.
      #
      # @param seed [Integer, nil] from 0 to 2**32 - 1; nil: a new one for each run
      # @param threshold [Numeric] seconds
      # @param backend [String, Symbol, nil] see Heddle.run
      # @param grace [Numeric, nil] see Heddle.run
      # @yieldparam clock [Heddle::Testing::Clock]
      # @return [Object] the value of the block
      # @raise [ArgumentError] without a block, or if an argument is wrong
      # @raise [Heddle::Error] inside of another run, and in a thread that is not one of the main Ractor
      def run(seed: nil, threshold: THRESHOLD, backend: nil, grace: nil)
        Check.refuse("Heddle::Testing.run needs a block") unless block_given?
        check(seed, threshold)
        raise Error, "Heddle::Testing.run must be the outermost run of its thread" if Scheduler.of_thread

        seed ||= Random.rand(SEEDS)
        saying(seed) do
          Heddle.run(backend:, grace:) do
            with_clock(Clock.new(Scheduler.current, seed, threshold)) { |clock| yield clock }
          end
        end
      end

      # Runs the block like Heddle::Testing.run, and fails if a task, or a fiber of Fiber.schedule, is left over: if it
      # still waits when the block has ended and nothing else is ready. Background tasks are cancelled, as ever.
      # The helpers for minitest and RSpec call it for each test.
      #
      # @param options [Hash] see Heddle::Testing.run
      # @yieldparam clock [Heddle::Testing::Clock]
      # @return [Object] the value of the block
      # @raise [Heddle::Testing::LeftOver] it names each task, and the place where it was started
      def example(**options)
        Check.refuse("Heddle::Testing.example needs a block") unless block_given?

        places = Places.new
        run(**options) do |clock|
          value = yield clock
          clock.wait_until_idle
          places.check
          value
        end
      ensure
        places&.remove
      end

      # @return [Heddle::Testing::Clock, nil] the clock of the run on this thread; nil outside of Heddle::Testing.run
      def clock = Thread.current.thread_variable_get(CLOCK)

      # @private Prints the seed of a run that has failed, also with -W0, where warn prints nothing.
      def say(seed) = $stderr.write("heddle: this order of tasks comes back with the seed #{seed}\n")

      private

      def check(seed, threshold)
        right = seed.nil? || (seed.is_a?(Integer) && (0...SEEDS).cover?(seed))
        Check.refuse("seed: must be an Integer from 0 to #{SEEDS - 1} or nil, not #{Check.shown(seed)}") unless right
        Check.refuse("threshold: must be a number of seconds, not nil") if threshold.nil?

        Check.length_of_time("threshold", threshold)
      end

      def with_clock(clock)
        Thread.current.thread_variable_set(CLOCK, clock)
        yield clock
      ensure
        Thread.current.thread_variable_set(CLOCK, nil)
      end

      def saying(seed)
        yield
      rescue Exception # rubocop:disable Lint/RescueException -- it is raised again
        say(seed)
        raise
      end
    end
  end
end
