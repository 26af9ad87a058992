# frozen_string_literal: true

require "timeout"

# Limits in time.
module Heddle
  # Raised by Heddle.timeout when the time is over.
  class TimeoutError < ::Timeout::Error; end

  class << self
    # Calls the block, and ends it when the time is over. A +rescue => e+ in the block does not catch the exception that
    # ends it. When the ensure blocks have run, Heddle.timeout raises Heddle::TimeoutError. It works in tasks and in
    # every thread, also outside of Heddle.run. Timeouts may be nested: the first one that is over ends its own block.
    #
    # It also ends the tasks of a Heddle.run, Heddle.map and so on in the block. It does not end the tasks that
    # Heddle.spawn itself starts in the block, because these belong to the scope around it.
    #
    # @param seconds [Numeric, nil] nil, and more than 1e9 (31 years): no limit; 0 or less: the time is over before the
    #   block begins
    # @yield
    # @return [Object] the value of the block
    # @raise [Heddle::TimeoutError] when the time is over
    # @raise [ArgumentError] without a block, or if the seconds are no number
    def timeout(seconds, &)
      Check.refuse("Heddle.timeout needs a block") unless block_given?
      return yield if seconds.nil?

      Check.time("seconds", seconds)
      return yield if seconds > Check::SECONDS.end # Ruby's own Timeout cannot wait for that time

      raise TimeoutError, timeout_message(seconds) unless seconds.positive?

      end_after(seconds, &)
    end

    private

    # Ends the block after the time. The identity of the exception shows whose time was over.
    def end_after(seconds)
      strike = ::Timeout::ExitException.new(timeout_message(seconds))
      begin
        ::Timeout.timeout(seconds, strike, strike.message) { yield }
      rescue ::Timeout::ExitException => e
        raise unless e.equal?(strike)

        raise timeout_error(e), cause: nil
      end
    end

    # Makes the error of a timeout. It contains the other errors that were raised meanwhile.
    def timeout_error(strike)
      error = TimeoutError.new(strike.message)
      error.set_backtrace(strike.backtrace)
      TaskFailure.pass_on(strike, error)
      error
    end

    def timeout_message(seconds) = "not done after #{seconds} s"
  end
end
