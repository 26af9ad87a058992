# frozen_string_literal: true

# Ways out of the loop.
module Heddle
  using Internal

  class << self
    # Runs the block as without a scheduler: if the block waits, the whole thread waits, with all its tasks. Use it for
    # code during which no other task may run, or that does not work with a scheduler. It may be nested. Outside of
    # Heddle.run it only calls the block.
    #
    # @yield
    # @return [Object] the value of the block
    # @raise [ArgumentError] without a block
    def blocking(&)
      Check.refuse("Heddle.blocking needs a block") unless block_given?

      Fiber.blocking { yield }
    end

    # Runs the block on another thread. The task waits for it, and the other tasks go on. Use it for C code that
    # computes without the GVL (compression, images, bcrypt), or that waits without telling the scheduler. Ruby code
    # that computes does not get faster in this way, but the other tasks get their turns. Outside of Heddle.run it only
    # calls the block.
    #
    # A cancel or a timeout of the task interrupts the block as Thread#raise does: it ends a system call of Ruby, but
    # not a computation in C. The task always goes on only when the block has ended, because the block may use objects
    # of the task. The block sees the Fiber storage of the task. It does not run as a task itself, and may call
    # Heddle.run.
    #
    # @example A C library that waits for a socket, and ignores interrupts
    #   Heddle.offload(stop: -> { socket.shutdown }) { library.receive }
    #
    # At most 64 blocks run at the same time. The others wait in line, and a cancel or a timeout makes them leave the
    # line at once. Blocks that are offloaded inside of a block (by its Heddle.run) have 64 threads of their own, so
    # that no block waits for a thread that waits for it.
    #
    # @param stop [#call, nil] makes the block end, in place of an interrupt: it is called once, in the thread of the
    #   task, if a cancel or a timeout comes while the block runs. It must not wait. The value of the block is lost
    #   then. An error that it raises is reported (see Heddle.on_error), and the block is interrupted.
    # @param lasting [Boolean] the block may wait for a long time, for example for a subscription: it gets a thread of
    #   its own, beside the 64 threads that other blocks share
    # @yield on another thread
    # @return [Object] the value of the block
    # @raise [Exception] the error of the block
    # @raise [ArgumentError] without a block, or if stop has no method call
    def offload(stop: nil, lasting: false, &block)
      Check.refuse("Heddle.offload needs a block") unless block

      Check.callable("stop", stop)
      scheduler = Scheduler.current
      scheduler ? scheduler.offload_block(block, stop:, lasting:) : yield
    end
  end
end
