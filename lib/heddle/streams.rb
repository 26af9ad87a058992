# frozen_string_literal: true

# Items on their way between tasks. The classes are loaded when a program first uses them.
module Heddle
  autoload :Channel, "#{__dir__}/channel"
  autoload :Selection, "#{__dir__}/internal/selection"
  private_constant :Selection

  class << self
    # Waits until one of the channels has an item or has ended, or one of the tasks has ended, and takes one item from
    # it. If several of them are ready, the choice is random, so none of them is preferred for ever. The others keep
    # their items.
    #
    # A channel that has ended, and a task that has ended, is ready each time. So leave it out of the next call.
    #
    # @example
    #   source, item = Heddle.select(orders, returns, timeout: 5)
    #
    # @param sources [Array<Heddle::Channel, Heddle::Task>]
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Array(Heddle::Channel, Object), Array(Heddle::Task, Object), nil] the channel and its item, which is nil
    #   if the channel has ended; or the task and its value; nil if the time is over
    # @raise [ArgumentError] without a source, if one is neither a channel nor a task, or if the timeout is no number
    # @raise [Exception] the error with which the channel was closed, or the error of the task
    # @raise [ThreadError] in a signal handler, where Ruby allows no lock
    def select(*sources, timeout: nil)
      Check.refuse("sources: at least one channel or task is needed") if sources.empty?
      wrong = sources.find { |source| !source.is_a?(Task) && !source.is_a?(Channel) }
      Check.refuse("sources: must be channels and tasks, not #{Check.shown(wrong)}") if wrong
      Check.time("timeout", timeout)

      source, received = Selection.new(sources).first(timeout)
      [source, received.first] if source
    end
  end
end
