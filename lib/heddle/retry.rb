# frozen_string_literal: true

require_relative "internal/retrying"

# Work that is tried again.
module Heddle
  class << self
    # Calls the block, and calls it again after some of its errors, with a pause in between. The pauses grow: at most
    # +base+ seconds after the first error, then twice as much each time, up to +max+. Jitter makes each pause a random
    # part of that time, so that clients that have failed together do not come back together. Works in tasks and in
    # threads.
    #
    # The last error is raised again: when all attempts are used up, when it is an error of another kind, or when the
    # pause would not end before the deadline of the caller (Heddle.remaining). Its method +suppressed+ returns the
    # errors of the attempts before.
    #
    # A cancel, a timeout around the call, SystemExit and signals end it at once, whatever +on+ says, also if the block
    # has raised another error because of them.
    #
    # @example
    #   Heddle.retry(on: [Errno::ECONNRESET, Net::ReadTimeout], attempts: 5) { Net::HTTP.get(uri) }
    #
    # @example A task that is started anew for as long as its scope lives
    #   Heddle.spawn { Heddle.retry(attempts: nil, reset_after: 60) { listen(channel) } }
    #
    # @param on [Module, #===, Array<Module, #===>] the errors after which the block is called again
    # @param attempts [Integer, nil] how often the block is called at most; nil: until it succeeds
    # @param base [Numeric] the first pause, in seconds
    # @param max [Numeric] the longest pause, in seconds
    # @param jitter [Boolean] false: each pause has its full length
    # @param wait [#call, Numeric, nil] the pauses in seconds, instead of the growing ones. It may be called with the
    #   error and the number of the attempt, as for the Retry-After of a server; if it returns nil, the growing pause
    #   counts.
    # @param reset_after [Numeric, nil] an attempt that fails after this number of seconds counts as the first one again
    # @yieldparam attempt [Integer] from 1 on
    # @return [Object] the value of the block
    # @raise [Exception] the last error
    # @raise [ArgumentError] without a block, or if an option is not as it should be
    def retry(on: StandardError, attempts: 5, base: 0.1, max: 10, jitter: true, wait: nil, reset_after: nil, &block)
      Check.refuse("Heddle.retry needs a block") unless block

      Retrying.new(on:, attempts:, base:, max:, jitter:, wait:, reset_after:).call(&block)
    end
  end
end
