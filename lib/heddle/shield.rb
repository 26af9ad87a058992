# frozen_string_literal: true

require "timeout"

module Heddle
  using Internal

  # The exceptions that Heddle.shield delays, beside all limits in time; and the exceptions that it delays in a thread
  # without Heddle.
  SHIELDED = { Cancelled => :never }.freeze
  SHIELDED_IN_A_THREAD = { ::Timeout::ExitException => :never }.freeze
  private_constant :SHIELDED, :SHIELDED_IN_A_THREAD

  class << self
    # Runs the block to its end. If meanwhile the task is cancelled, its scope fails or ends, or a Heddle.timeout or
    # Timeout.timeout around the block is over, the exception is raised only at the end of the block. Timeouts and
    # scopes inside of the block end as always. Use it for a few steps that belong together and end soon. When the whole
    # thread has to end (Ctrl-C, exit, Thread#raise, Thread#kill), the block has the grace period of its Heddle.run to
    # end. In a thread without Heddle it delays timeouts, also those inside of the block.
    #
    # @example
    #   Heddle.shield { account.withdraw(amount) && other.deposit(amount) }
    #
    # @yield
    # @return [Object] the value of the block
    # @raise [ArgumentError] without a block
    def shield
      Check.refuse("Heddle.shield needs a block") unless block_given?

      scheduler = Scheduler.current
      scheduler ? scheduler.shield(SHIELDED) { yield } : Thread.handle_interrupt(SHIELDED_IN_A_THREAD) { yield }
    end
  end
end
