# frozen_string_literal: true

require_relative "internal/fan_out"

# Blocks that run for many items at once.
module Heddle
  class << self
    # Calls the block for each item, in a task each, and returns its values in the order of the items. If the block
    # raises an error for one item, the other tasks are cancelled. When they have ended, the error is raised here. Also
    # waits for the tasks that the block spawns. Starts a run if none exists.
    #
    # An item is taken only when a task for it can start, and there are never more than +limit+ items that are not done.
    # So the items may be lazy, endless, or wait for the next item. A Queue or a Heddle::Channel gives its items until
    # it is closed and empty.
    #
    # @example
    #   bodies = Heddle.map(urls, limit: 20) { |url| Net::HTTP.get(URI(url)) }
    #
    # @param items [#each, Thread::Queue] an Array, a Range, a Hash, an Enumerator, also a lazy one, ...
    # @param limit [Integer, nil] how many tasks may run at the same time; nil: one for each item
    # @param progress [#call, nil] is called with the number of items that are done, in the task of each when it is done
    # @yieldparam item [Object]
    # @return [Array<Object>]
    # @raise [ArgumentError] without a block, or if the limit is not positive, or the progress cannot be called
    # @raise [Exception] the first error of the block, the items or the progress
    def map(items, limit: nil, progress: nil, &block)
      Check.refuse("Heddle.map needs a block") unless block

      values = []
      FanOut.new(items, limit, progress).run(block) { |item, index| values[index] = yield(item) }
      values
    end

    # Calls the block for each item like Heddle.map, but does not keep the values of the block. So a hundred thousand
    # items need only the memory of the items that run at the same time.
    #
    # @example
    #   Heddle.each(1..100_000, limit: 200) { |id| refresh(id) }
    #
    # @param items [#each, Thread::Queue]
    # @param limit [Integer, nil] how many tasks may run at the same time; nil: one for each item
    # @param progress [#call, nil] is called with the number of items that are done, in the task of each when it is done
    # @yieldparam item [Object]
    # @return [#each, Thread::Queue] the items, as Array#each does
    # @raise [ArgumentError] without a block, or if the limit is not positive, or the progress cannot be called
    # @raise [Exception] the first error of the block, the items or the progress
    def each(items, limit: nil, progress: nil, &block)
      Check.refuse("Heddle.each needs a block") unless block

      FanOut.new(items, limit, progress).run(block) { |item| yield item }
      items
    end

    # Calls the block for each item, in a task each, and returns the tasks when all have ended: each has a value or an
    # error. An error cancels no other task. But SystemExit, signals and NoMemoryError are meant for the program: they
    # cancel the others, and are raised here. Starts a run if none exists.
    #
    # @example
    #   failed = Heddle.settle(hosts, limit: 50) { |host| ping(host) }.select(&:error)
    #
    # @param items [#each, Thread::Queue]
    # @param limit [Integer, nil] how many tasks may run at the same time; nil: one for each item
    # @param progress [#call, nil] is called with the number of items that are done, in the task of each when it is
    #   done, also with an error, but not when it is cancelled. An error of the progress becomes the error of that task.
    # @yieldparam item [Object]
    # @return [Array<Heddle::Task>] in the order of the items
    # @raise [ArgumentError] without a block, or if the limit is not positive, or the progress cannot be called
    # @raise [Exception] the error of the items
    def settle(items, limit: nil, progress: nil, &block)
      Check.refuse("Heddle.settle needs a block") unless block

      FanOut.new(items, limit, progress).run_isolated(&block)
    end
  end
end
