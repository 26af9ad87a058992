# frozen_string_literal: true

module Heddle
  # Lets at most +limit+ tasks and threads in per period; the others wait in line. All tasks and threads of a period may
  # come in at once. This limit holds for every period of that length: turns that were not used during a pause are not
  # saved up. Tasks of several schedulers and threads without Heddle can share it.
  #
  # The task or thread that has waited longest is always next. A task that is cancelled or timed out while it waits does
  # not use up a turn.
  #
  # @example At most ten requests in any second
  #   limiter = Heddle::RateLimiter.new(10, per: 1)
  #   urls.each { |url| Heddle.spawn { limiter.acquire { Net::HTTP.get(url) } } }
  class RateLimiter
    # @return [Integer] how many tasks and threads are let in per period
    attr_reader :limit

    # @return [Numeric] the length of the period in seconds
    attr_reader :per

    # @param limit [Integer]
    # @param per [Numeric] seconds, from 1e-9 to 1e9
    # @raise [ArgumentError] if one of them is not such a number
    def initialize(limit, per:)
      Check.positive_integer("limit", limit)
      Check.seconds("per", per)

      @limit = limit
      @per = per
      @line = Limiter.new(1) # the entry with the place waits for the time, the others for their turn
      @entries = [] # when the last entries were let in, at most @limit times
    end

    # @return [Integer] how many tasks and threads wait
    def waiting = @line.waiting + @line.count

    # Waits until the caller is let in. With a block: then calls it. The block may take any time: Heddle::Limiter limits
    # how many blocks run at the same time.
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
