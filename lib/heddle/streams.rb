# frozen_string_literal: true

require_relative "channel"
require_relative "pipeline"

# Items on their way between tasks.
module Heddle
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

    # Makes a pipeline: stages that work at the same time, each with its limit. An item is taken from the source only
    # when the first stage has a place for it. So the source may be lazy, endless, or wait for its next item.
    #
    # @example
    #   Heddle.pipeline(urls).map(limit: 8) { |url| fetch(url) }.each(limit: 2) { |page| store(page) }
    #
    # @param source [#each, Thread::Queue] an Array, an Enumerator, also a lazy one, a Queue or a channel until it is
    #   closed and empty, the lines of an IO, ...
    # @return [Heddle::Pipeline]
    # @raise [ArgumentError] if the source has no method each
    def pipeline(source)
      Check.responds("source", source, :each) unless source.is_a?(Thread::Queue)
      Pipeline.new(source, [])
    end
  end
end
