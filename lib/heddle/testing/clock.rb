# frozen_string_literal: true

require_relative "ends"

module Heddle
  using Internal

  module Testing
    # The virtual clock of a run. Heddle::Testing.run makes it.
    class Clock
      # What the loop does when all tasks wait: see fibers/virtual_clock.h.
      AT_ONCE = 0
      AFTER_THRESHOLD = 1
      AS_MACHINE = 2
      NS_PER_SECOND = 1e9
      private_constant :AT_ONCE, :AFTER_THRESHOLD, :AS_MACHINE, :NS_PER_SECOND

      # @return [Integer] the seed of the run
      attr_reader :seed

      # @private
      def initialize(scheduler, seed, threshold)
        @scheduler = scheduler
        @seed = seed
        scheduler.test_with(self, seed, threshold)
        @began = scheduler.virtual_ns
      end

      # @return [Float] the seconds since the run began
      def now = (@scheduler.virtual_ns - @began) / NS_PER_SECOND

      # Lets this time pass, and then waits until all other tasks wait. They do in the order of their deadlines whatever
      # comes in this time.
      #
      # @param seconds [Numeric]
      # @return [self]
      # @raise [ArgumentError] if the seconds are no number, or negative
      # @raise [Heddle::Error] outside of its run
      def advance(seconds)
        Check.refuse("seconds: must be a number of seconds, not nil") if seconds.nil?
        Check.length_of_time("seconds", seconds)
        check_place
        sleep(seconds)
        wait_until_idle
      end

      # Waits until all other tasks wait, and nothing comes for them from the kernel. The clock does not jump before.
      #
      # @return [self]
      # @raise [Heddle::Error] outside of its run
      def wait_until_idle
        check_place
        @scheduler.wait_until_idle
        self
      end

      # @return [String]
      def inspect = "#<#{self.class} #{now} s, seed #{seed}>"

      private

      def check_place
        return if Scheduler.current.equal?(@scheduler)

        raise Error, "the clock of Heddle::Testing.run can only be used in a task of its run"
      end

      # The loop calls it at home, before it sleeps, if tasks wait for these IOs, or if other threads exist. It must not
      # wait. But the fiber may not be blocking: then the handler of a signal that comes meanwhile could not wait for a
      # task.
      def patience(ios)
        @scheduler.inline do # Ruby 3.4 would look at the folder on a thread of the pool
          ends = Ends.new
          if !@scheduler.pool_idle? || ios.any? { |io| ends.elsewhere?(io) }
            AS_MACHINE
          else
            ios.empty? && @scheduler.others_stuck? ? AT_ONCE : AFTER_THRESHOLD
          end
        end
      end
    end
  end
end
