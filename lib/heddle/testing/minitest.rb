# frozen_string_literal: true

require "zlib"

module Heddle
  module Testing
    # Runs each test of a class in a Heddle::Testing.example of its own, with setup and teardown. The clock is in the
    # method +clock+. A task that is left over fails the test.
    #
    # The seed of a test comes from the seed of minitest and the name of the test, so <tt>--seed</tt> brings the order
    # of the tasks back, too.
    #
    # @example
    #   class CrawlerTest < Minitest::Test
    #     include Heddle::Testing::Minitest
    #   end
    module Minitest
      # @private
      def run
        result = nil
        Testing.example(seed: heddle_seed) { result = super }
        Testing.say(heddle_seed) unless passed? || skipped?
        result
      rescue *::Minitest::Test::PASSTHROUGH_EXCEPTIONS
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- it is the outcome of the test
        heddle_failed_with(e)
        ::Minitest::Result.from(self)
      end

      # @return [Heddle::Testing::Clock] the clock of this test
      def clock = Testing.clock

      # @return [Integer] the seed of this test. A class may define another one.
      def heddle_seed = Zlib.crc32("#{::Minitest.seed} #{self.class}##{name}")

      private

      # A task has failed, or is left over. The cancel that a failed task has caused in the test is no failure of its
      # own.
      def heddle_failed_with(error)
        failures.reject! { |one| one.is_a?(::Minitest::UnexpectedError) && one.error.is_a?(Cancelled) }
        failures << (error.is_a?(::Minitest::Assertion) ? error : ::Minitest::UnexpectedError.new(error))
      end
    end
  end
end
