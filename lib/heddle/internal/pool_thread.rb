# frozen_string_literal: true

module Heddle
  using Internal

  # Runs operations on a thread of the pool that may wait, and that not every Ruby offers to a scheduler.
  module PoolThread
    # Runs the block on a thread of the pool; inline where no Heddle scheduler runs. The block must not call a method of
    # the program: conversions of arguments, methods that may be overridden.
    #
    # @param options [Hash] see BlockingPool#run
    def self.run(what = "the file system", object = nil, **options, &block)
      scheduler = Scheduler.current
      scheduler ? scheduler.offload(block, **options, name: [what, object].compact) : yield
    end
  end
  private_constant :PoolThread
end
