# frozen_string_literal: true

require "timeout"

module Heddle
  # One call of Heddle.retry.
  class Retrying
    # The number of former errors that the last error lists.
    FORMER = 100
    # Errors after which nothing is tried again: somebody ends the caller.
    FINAL = [*FOR_THE_PROGRAM, ::Timeout::ExitException, Deadlock].freeze
    private_constant :FORMER, :FINAL

    # See Heddle.retry.
    # @raise [ArgumentError]
    def initialize(on:, attempts:, base:, max:, jitter:, wait:, reset_after:)
      Check.patterns("on", @on = on.is_a?(Array) ? on : [on])
      Check.positive_integer("attempts", attempts, ", or nil for no limit") unless attempts.nil?
      Check.pause("base", base)
      Check.pause("max", max)
      Check.boolean("jitter", jitter)
      Check.pause("wait", wait) unless wait.nil? || wait.respond_to?(:call)
      Check.seconds("reset_after", reset_after) unless reset_after.nil?

      @attempts = attempts || Float::INFINITY
      @base = base
      @max = max
      @jitter = jitter
      @wait = wait
      @reset_after = reset_after
      @former = []
    end

    # @return [Object] the value of the block
    def call
      attempt = 0
      while true # rubocop:disable Style/InfiniteLoop -- loop takes a StopIteration of the block for its own
        started = Clock.now
        begin
          return yield(attempt += 1)
        rescue Exception => e # rubocop:disable Lint/RescueException -- `on` says which errors
          attempt = 1 if @reset_after && Clock.now - started >= @reset_after
          error = e
          seconds = pause_after(e, attempt)
          give_up(e) unless seconds
        end
        @former << error
        @former.shift if @former.size > FORMER
        sleep(seconds) # outside of the rescue clause: a cancel has no cause then
      end
    end

    private

    # @return [Numeric, nil] seconds; nil: no further attempt
    def pause_after(error, attempt)
      return if attempt >= @attempts || final?(error)
      return if @on.none? { |kind| kind === error } # rubocop:disable Style/CaseEquality -- as a rescue clause does

      seconds = own_pause(error, attempt) || growing_pause(attempt)
      left = Heddle.remaining
      seconds if left.nil? || seconds < left
    end

    def own_pause(error, attempt)
      return @wait unless @wait.respond_to?(:call)

      arity = @wait.respond_to?(:arity) ? @wait.arity : @wait.method(:call).arity
      seconds = @wait.call(*(arity.negative? ? [error, attempt] : [error, attempt].first(arity)))
      Check.time("wait", seconds)
      return if seconds.nil?

      [seconds, 0].max.tap { |pause| Check.pause("wait", pause) }
    end

    def growing_pause(attempt)
      seconds = [@base * (2.0**[attempt - 1, 1000].min), @max].min
      @jitter ? rand(0.0..seconds) : seconds
    end

    # Does it end the caller, or was it raised because of an exception that does? A Timeout::Error has ended its block.
    def final?(error)
      while error && !error.is_a?(::Timeout::Error)
        return error.meant_for?(Task.here) if error.is_a?(Cancelled)
        return true if FINAL.any? { |kind| error.is_a?(kind) }

        error = TaskFailure.cause_of(error)
      end
      false
    end

    # A cancel or a deadline is no outcome of the attempts. With their errors, these would leave a scope that it ends.
    def give_up(error)
      TaskFailure.attach(error, @former) unless final?(error)
      raise error
    end
  end
  private_constant :Retrying
end
