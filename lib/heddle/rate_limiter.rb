# frozen_string_literal: true

module Heddle
  # Lets at most so many tasks and threads in per period; the others wait in line. Those of a period may all come in at
  # once. This holds for every period of that length: turns that nobody took during a pause are not saved up. Tasks of
  # several schedulers and threads without Heddle can share it.
  #
  # The one that has waited longest is always next. A task that is cancelled or timed out while it waits does not use up
  # a turn.
  #
  # @example At most ten requests in any second
  #   limiter = Heddle::RateLimiter.new(10, per: 1)
  #   urls.each { |url| Heddle.spawn { limiter.acquire { Net::HTTP.get(url) } } }
  class RateLimiter
    # @return [Integer] how many are let in per period
    attr_reader :limit

    # @return [Numeric] the length of the period in seconds
    attr_reader :per

    # @param limit [Integer]
    # @param per [Numeric] seconds, from 1e-9 to 1e9
    # @raise [ArgumentError] if one of them is no such number
    def initialize(limit, per:)
      Check.positive_integer("limit", limit)
      Check.seconds("per", per)

      @limit = limit
      @per = per
      @line = Limiter.new(1) # who is in waits for the time, the others for their turn
      @entries = [] # when the last ones were let in, at most @limit of them
    end

    # @return [Integer] how many wait
    def waiting = @line.waiting + @line.count

    # Waits until the caller is let in. With a block: calls it then. (The block may take any time: Heddle::Limiter
    # limits how many run at the same time.)
    #
    # @yield
    # @return [Object] the value of the block; without one, the limiter
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def acquire
      @line.acquire { wait_for_time }
      block_given? ? yield : self
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{limit} per #{per} s#{", #{waiting} waiting" if waiting.positive?}>"
    end

    private

    def wait_for_time
      if @entries.size == @limit
        due = @entries.first + @per
        while (left = due - Clock.now) > 0
          sleep(left)
        end
        @entries.shift
      end
      @entries << Clock.now
    end
  end
end
