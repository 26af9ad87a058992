# frozen_string_literal: true

module Heddle
  using Internal

  # What the methods of time slices share: which lengths are right, and where slices work.
  module TimeSlices
    SHORTEST = 0.001
    LONGEST = 10
    # Jobs have this one by default. With 0.01 small requests beside long ones took 31 ms (p99), with 0.005 16 ms.
    DEFAULT = 0.005
    private_constant :SHORTEST, :LONGEST, :DEFAULT

    class << self
      # @return [Float, false, nil] the seconds in HEDDLE_TIME_SLICE; false: it says 0, so there are no slices
      attr_reader :forced

      # @raise [ArgumentError] unless the value is nil, false, or a number of seconds that a slice may have
      def check(value)
        return if value.nil? || value == false

        right = value.is_a?(Numeric) && value.real? && value.positive? && (SHORTEST..LONGEST).cover?(value)
        return if right

        Check.refuse("time_slice: must be from #{SHORTEST} to #{LONGEST} seconds, not #{Check.shown(value)}")
      end

      # @raise [ArgumentError] if the value differs from that of the run around it
      def check_nested(scheduler, value)
        around = scheduler.time_slice || false
        return if value.nil? || value == around

        Check.refuse("time_slice: must be #{around}, as in the run around this one, or nil, not #{Check.shown(value)}")
      end

      # @param text [String] a number of seconds as a user has written it
      # @return [Float, false, nil] false: 0, no slices; nil: it is wrong
      def read(text)
        value = Float(text, exception: false)
        return false if value&.zero?

        value if value && (SHORTEST..LONGEST).cover?(value)
      end

      # @return [String] the values that {read} takes
      def range = "0, or from #{SHORTEST} to #{LONGEST} seconds"

      # Begins them.
      #
      # @param scheduler [Heddle::Scheduler]
      # @param wanted [Numeric, false, nil]
      # @return [void]
      # @raise [Heddle::Error] if they do not work here, and the program wants them
      def begin(scheduler, wanted)
        seconds = wanted.nil? ? forced : wanted
        return unless seconds

        reason = obstacle
        return scheduler.slice_time(seconds) unless reason
        raise Error, "time slices do not work here: #{reason}" if wanted
      end

      # Chooses the time slice of a product that has them by default. A value that the program has set comes first, then
      # HEDDLE_TIME_SLICE. Where they do not work, the default has no effect.
      #
      # @param wanted [Numeric, false, nil] the value that the program has set
      # @return [Numeric, false, nil] for Heddle.run
      def chosen(wanted) = wanted.nil? && forced.nil? && obstacle.nil? ? DEFAULT : wanted

      # @return [String, nil] why they do not work here
      def obstacle
        return "ZJIT is on, with which they are not tested" if defined?(RubyVM::ZJIT) && RubyVM::ZJIT.enabled?

        Scheduler.no_slices
      end

      private

      def of_environment(text)
        return if text.empty?

        value = read(text)
        warn("heddle: HEDDLE_TIME_SLICE=#{text} has no effect: it must be #{range}") if value.nil?
        value
      end
    end

    @forced = of_environment(ENV.fetch("HEDDLE_TIME_SLICE", ""))
  end
  private_constant :TimeSlices

  class << self
    # @return [Boolean] whether time slices work here: on this Ruby, in this Ractor. Where they do not, a `time_slice:`
    #   of Heddle.run raises an error
    def time_slices? = TimeSlices.obstacle.nil?

    # Runs the block without time slices: between two waits of its own, no other task runs. Use it for code that
    # relies on this, in a program whose Heddle.run has a time_slice. Other tasks run while the block waits, as always.
    # Without time slices, it only calls the block.
    #
    # @example
    #   Heddle.without_time_slices { @count += 1 }
    #
    # @yield
    # @return [Object] the value of the block
    # @raise [ArgumentError] without a block
    def without_time_slices
      Check.refuse("Heddle.without_time_slices needs a block") unless block_given?

      scheduler = Scheduler.of_thread
      scheduler&.time_slice ? scheduler.whole { yield } : yield
    end

    # Makes the code in a folder exempt from time slices: while one of its methods or blocks is on top of the stack, no
    # slice ends. For libraries whose code relies on this. A slice may end in code that such a method calls, and which
    # is in another folder.
    #
    # @example
    #   Heddle.exempt_from_time_slices(__dir__)
    #
    # @param folder [String]
    # @return [void]
    # @raise [SystemCallError] if the folder does not exist
    def exempt_from_time_slices(folder)
      Scheduler.exempt(File.join(File.realpath(folder), ""))
    end
  end

  exempt_from_time_slices(__dir__)
  Scheduler.exempt("#{File.realpath(__dir__)}.rb")
end
