# frozen_string_literal: true

require "zlib"

module Heddle
  module Testing
    # Runs each example of a group in a Heddle::Testing.example of its own, with its hooks. The clock is in the method
    # +clock+. A task that is left over fails the example.
    #
    # The seed of an example comes from the seed of RSpec and the place of the example, so <tt>--seed</tt> brings the
    # order of the tasks back, too. An example with <tt>heddle_seed: 123</tt> has this one.
    #
    # @example In all groups with the tag :heddle
    #   RSpec.configure do |config|
    #     config.include Heddle::Testing::RSpec, :heddle
    #   end
    module RSpec
      # @private
      def self.included(group)
        super
        group.around do |example|
          seed = example.metadata[:heddle_seed] || Zlib.crc32("#{::RSpec.configuration.seed} #{example.id}")
          Testing.example(seed:) { example.run }
          Testing.say(seed) if example.exception
        rescue Exception # rubocop:disable Lint/RescueException -- RSpec adds it to the failures of the example
          # The cancel that a failed task has caused in the example is no failure of its own.
          example.example.display_exception = nil if example.exception.is_a?(Cancelled)
          raise
        end
      end

      # @return [Heddle::Testing::Clock] the clock of this example
      def clock = Testing.clock
    end
  end
end
