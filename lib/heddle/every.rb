# frozen_string_literal: true

# Work that is repeated.
module Heddle
  # The turns of one Heddle.every.
  class Repetition
    # What may become of a turn whose time comes while an earlier call runs.
    OVERLAPS = %i[skip queue concurrent].freeze

    # See Heddle.every.
    def initialize(seconds, first, jitter, overlap, block)
      @seconds = seconds
      @first = first
      @jitter = jitter
      @overlap = overlap
      @block = block
      @gets_missed = !block.lambda? || !block.arity.zero?
      @calls = {}.compare_by_identity # the tasks of calls that may overlap
    end

    # Calls the block until it is cancelled.
    def run
      Task.match_apart(@block)
      start = Clock.now + (@first == :now ? 0 : @first || @seconds)
      number = -1
      while true # rubocop:disable Style/InfiniteLoop -- loop takes a StopIteration of the block for its own
        before = number
        number = turn_after(before, Clock.now - start)
        wait_until(start + (@seconds * (number + rand(0.0..@jitter)))) unless @first == :now && number.zero?
        call(number - before - 1)
      end
    ensure
      @calls.each_key(&:cancel)
    end

    private

    # @param elapsed [Float] the time since the first turn was due
    # @return [Integer] the turn that follows; those whose time is over are missed, but not the first one
    def turn_after(number, elapsed)
      number += 1
      number.zero? || @overlap == :queue ? number : [number, ((elapsed / @seconds) - @jitter).ceil].max
    end

    def wait_until(due)
      sleep([due - Clock.now, 0].max) # also when the time is over: the others must run
      while (left = due - Clock.now) > 0
        sleep(left)
      end
    end

    def call(missed)
      return call_block(missed) unless @overlap == :concurrent

      Heddle.spawn(name: Task.current.name, background: true) do
        @calls[Task.current] = true
        Task.match_apart(@block)
        call_block(missed)
      ensure
        @calls.delete(Task.current)
      end
    end

    def call_block(missed) = @gets_missed ? @block.call(missed) : @block.call
  end
  private_constant :Repetition

  class << self
    # Starts a background task that calls the block at an interval: at each multiple of the seconds, counted from the
    # call of Heddle.every. So the times do not drift, however long the block takes. Calls do not overlap: if the block
    # takes longer than the interval, the missed turns are skipped, and the next call gets their number.
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
    # @example At once, and not at the same time as all other servers
    #   Heddle.every(60, first: :now, jitter: 0.1) { |missed| refresh; log("#{missed} turns missed") if missed > 0 }
    #
    # @param seconds [Numeric] from 1e-9 to 1e9
    # @param first [:now, Numeric, nil] the seconds until the first turn; :now: the block is called at once; nil: one
    #   interval
    # @param jitter [Numeric] from 0 to 1: each turn is late by a random time of up to this part of the interval
    # @param overlap [Symbol] what becomes of a turn whose time comes while the block still runs. :skip: it is missed;
    #   :queue: it follows as soon as the block returns; :concurrent: the block is called in a task of its own
    # @yieldparam missed [Integer] the number of turns that were missed since the last call
    # @return [Heddle::Task]
    # @raise [ArgumentError] without a block, or if an option is not as it should be
    # @raise [Heddle::Error] outside of Heddle.run
    def every(seconds, first: nil, jitter: 0, overlap: :skip, &block)
      Check.refuse("Heddle.every needs a block") unless block

      Check.seconds("seconds", seconds)
      Check.pause("first", first, ":now or ") unless first.nil? || first == :now
      Check.fraction("jitter", jitter)
      Check.one_of("overlap", overlap, Repetition::OVERLAPS)

      repetition = Repetition.new(seconds, first, jitter, overlap, block)
      spawn(name: "every #{seconds} s", background: true) { repetition.run }
    end
  end
end
