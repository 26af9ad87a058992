# frozen_string_literal: true

require_relative "check"

# What is to be done again and again.
module Heddle
  class << self
    # Starts a background task that calls the block again and again: first when the seconds are over, then at each
    # multiple of them, counted from the call of Heddle.every. So it does not drift, however long the block takes. It
    # does not overlap either: where the block takes longer than the seconds, what it has missed is left out.
    #
    # It ends with its scope, which does not wait for it, or with a cancel. An error of the block is a failure of the
    # task, and so of the scope.
    #
    # @example
    #   Heddle.run do
    #     Heddle.every(10) { puts "#{done} of #{total}" }
    #     Heddle.each(urls, limit: 20) { |url| fetch(url) }
    #   end
    #
    # @param seconds [Numeric]
    # @yield
    # @return [Heddle::Task]
    # @raise [ArgumentError] without a block, or if the seconds are not positive
    # @raise [Heddle::Error] outside of Heddle.run
    def every(seconds, &block)
      raise ArgumentError, "Heddle.every needs a block" unless block

      Check.positive_number("seconds", seconds)

      spawn(name: "every #{seconds} s", background: true) { repeat(seconds, &block) }
    end

    private

    def repeat(seconds)
      started = Clock.now
      number = 0
      while true # rubocop:disable Style/InfiniteLoop -- loop takes a StopIteration of the block for its own
        number = [number + 1, ((Clock.now - started) / seconds).ceil].max
        while (left = started + (number * seconds) - Clock.now) > 0
          sleep(left)
        end
        yield
      end
    end
  end
end
