# frozen_string_literal: true

# Work that is repeated.
module Heddle
  class << self
    # Starts a background task that calls the block at an interval: at each multiple of the seconds, counted from the
    # call of Heddle.every. So the times do not drift, however long the block takes. Calls do not overlap: if the block
    # takes longer than the interval, the missed times are skipped.
    #
    # The task ends with its scope, which does not wait for it, or with a cancel. If the block raises an error, the task
    # fails, and so does the scope.
    #
    # @example
    #   Heddle.run do
    #     Heddle.every(10) { puts "#{done} of #{total}" }
    #     Heddle.each(urls, limit: 20) { |url| fetch(url) }
    #   end
    #
    # @param seconds [Numeric] from 1e-9 to 1e9
    # @yield
    # @return [Heddle::Task]
    # @raise [ArgumentError] without a block, or if the seconds are not such a number
    # @raise [Heddle::Error] outside of Heddle.run
    def every(seconds, &block)
      Check.refuse("Heddle.every needs a block") unless block

      Check.seconds("seconds", seconds)

      spawn(name: "every #{seconds} s", background: true) { repeat(seconds, &block) }
    end

    private

    def repeat(seconds, &block)
      Task.match_apart(block)
      started = Clock.now
      number = 0
      while true # rubocop:disable Style/InfiniteLoop -- loop takes a StopIteration of the block for its own
        number = [number + 1, ((Clock.now - started) / seconds).ceil].max
        due = started + (number * seconds)
        sleep([due - Clock.now, 0].max) # also when the time is over: the others must run
        while (left = due - Clock.now) > 0
          sleep(left)
        end
        yield
      end
    end
  end
end
