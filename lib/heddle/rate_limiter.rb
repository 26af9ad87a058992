# frozen_string_literal: true

require_relative "limiter"

module Heddle
  # Lets so many in per time; the others wait in line. Between the first and the last of any limit + 1 that follow each
  # other lies at least that time: there is no greater burst anywhere. For tasks, for threads without Heddle, and for
  # both at once.
  #
  # Who has waited longest is next. One that is cancelled or timed out while it waits takes no turn away from those
  # behind it.
  #
  # @example At most ten requests in any second
  #   limiter = Heddle::RateLimiter.new(10, per: 1)
  #   urls.each { |url| Heddle.spawn { limiter.acquire { Net::HTTP.get(url) } } }
  class RateLimiter
    # @return [Integer] how many are let in per time
    attr_reader :limit

    # @return [Numeric] that time in seconds
    attr_reader :per

    # @param limit [Integer]
    # @param per [Numeric] seconds
    # @raise [ArgumentError] if one of them is not positive
    def initialize(limit, per:)
      Check.positive_integer("limit", limit)
      Check.positive_number("per", per, " of seconds")

      @limit = limit
      @per = per
      @line = Limiter.new(1) # who is in waits for the time, the others for their turn
      @entries = [] # when the last ones were let in, at most @limit of them
    end

    # @return [Integer] how many wait
    def waiting = @line.waiting + @line.count

    # Waits until it is let in. With a block: calls it then. (It may take as long as it likes: Heddle::Limiter limits
    # how many do so at the same time.)
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
