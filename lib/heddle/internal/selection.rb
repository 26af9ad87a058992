# frozen_string_literal: true

module Heddle
  # A task or thread that takes one item of several sources: channels, and tasks, whose item is their value. Each source
  # wakes it when it may have an item. It takes the item itself when it runs. So no item is on its way to a receiver
  # that is cancelled.
  class Selection
    # @param sources [Array<Channel, Task>]
    def initialize(sources)
      @sources = sources
      @found = nil
    end

    # @param timeout [Numeric, nil] seconds
    # @return [Array(Channel, Array), Array(Task, Array), nil] a source, and its item, or no item if it has ended; nil
    #   if the time is over
    def first(timeout = nil)
      CoreExt.spend_turn(nil)
      look || (outlast(timeout) unless timeout && timeout <= 0)
      returned = @found
    ensure # an exception may come when an item is already taken
      @found.first.take_back(@found.last) if @found && !returned && @found.first.is_a?(Channel)
    end

    # A source calls it, and holds its lock.
    #
    # @param source [Channel, Task]
    # @param received [Array] an item, or no item if the source has ended
    # @return [true]
    def found(source, received)
      @found = [source, received]
      true
    end

    # Any thread may call it.
    # @return [void]
    def wake = @wakes << true

    private

    # Asks the sources in random order, so that none is preferred.
    def look
      (@sources.size > 1 ? @sources.shuffle : @sources).any? { |source| source.receive(self) }
    end

    def outlast(timeout)
      ends = timeout && (Clock.now + timeout)
      @wakes = Completion.new("an item of", *@sources.flat_map { |source| [source, "or"] }[..-2])
      @sources.each { |source| source.add_receiver(self) }
      until look
        left = ends && (ends - Clock.now)
        return if left && left <= 0

        @wakes.pop(timeout: left)
        @wakes.clear
      end
    ensure
      @sources.each { |source| source.remove_receiver(self) }
    end
  end
  private_constant :Selection
end
