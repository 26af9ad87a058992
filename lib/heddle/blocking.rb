# frozen_string_literal: true

# Ways out of the loop.
module Heddle
  using Internal

  class << self
    # Runs the block as without a scheduler: whatever waits in it holds up the whole thread, with all tasks. For code
    # that must not be interleaved with others, or that does not cooperate with schedulers. May be nested; where no
    # Heddle runs, it only calls the block.
    #
    # @yield
    # @return [Object] the value of the block
    # @raise [ArgumentError] without a block
    def blocking(&)
      raise ArgumentError, "Heddle.blocking needs a block" unless block_given?

      Fiber.blocking { yield }
    end

    # Runs the block on a worker thread, while the task waits and the others go on: for what computes in C without the
    # GVL (a compression, an image, bcrypt), or waits in C without telling the scheduler. Ruby code that computes gets
    # no faster by it, but the others get their turns. Where no Heddle runs, it only calls the block.
    #
    # A cancel or a timeout of the task interrupts the block as Thread#raise does: a system call of Ruby's ends, what
    # computes in C runs to its end. In any case the task goes on when the block has ended, for the block may use what
    # belongs to the task. The block sees the Fiber storage of the task. It is no task itself, and may have a Heddle.run
    # of its own.
    #
    # @example A C library that waits for a socket, and does not heed interrupts
    #   Heddle.offload(stop: -> { socket.shutdown }) { library.receive }
    #
    # @param stop [#call, nil] what makes the block end, in place of an interrupt: called once, in the thread of the
    #   task, if a cancel or a timeout comes while the block runs. It must not wait. The value of the block is
    #   lost then.
    # @param lasting [Boolean] the block may wait for long, as for a subscription: it gets a thread beside the 64 that
    #   the others share
    # @yield on another thread
    # @return [Object] the value of the block
    # @raise [Exception] what the block has raised
    # @raise [ArgumentError] without a block, or if stop has no method call
    def offload(stop: nil, lasting: false, &block)
      raise ArgumentError, "Heddle.offload needs a block" unless block

      Check.callable("stop", stop)
      scheduler = Scheduler.current
      scheduler ? scheduler.offload_block(block, stop:, lasting:) : yield
    end
  end
end
