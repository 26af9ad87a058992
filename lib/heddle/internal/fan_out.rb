# frozen_string_literal: true

module Heddle
  # Starts a task for each of some items, in their order, and limits how many run at a time. It takes an item only when
  # its task can start: no item waits in memory.
  class FanOut
    # @param items [#each, Thread::Queue]
    # @param limit [Integer, nil] how many tasks may run at the same time; nil: all of them
    # @param progress [#call, nil] is called in the task of each item, when it is done, with the number of items that
    #   are done
    # @raise [ArgumentError]
    def initialize(items, limit, progress = nil)
      Check.responds("items", items, :each) unless items.is_a?(Thread::Queue)
      Check.positive_integer("limit", limit, ", or nil for no limit") unless limit.nil?
      Check.callable("progress", progress)

      @items = items
      @limit = limit || Float::INFINITY
      @progress = progress
      @ended = nil # an entry for each task that has ended
      @running = 0 # the number of tasks without the entries taken from @ended
      @count = @done = 0
      @error = nil # the error of the first task that failed
    end

    # Waits for all tasks. When one ends with an error, the others are cancelled, and its error is raised.
    #
    # @param block [Proc] a block of the program that the work calls
    # @yieldparam item [Object] in the task
    # @yieldparam index [Integer]
    # @return [void]
    def run(block, &work)
      Heddle.run do
        scope = begin_in(Scope.current)
        feed do |item, index|
          scope.spawn do
            Task.match_apart(block)
            perform(item, index, &work)
          end
        end
      end
    end

    # Waits for all tasks. They are isolated: the error of one does not cancel the others.
    #
    # @yieldparam item [Object] in the task
    # @return [Array<Heddle::Task>] the tasks, which have ended, in the order of the items
    def run_isolated(&block)
      tasks = []
      Heddle.run do
        scope = begin_in(Scope.current)
        feed do |item|
          tasks << scope.spawn_isolated(ended: -> { settled($!) }) do
            Task.match_apart(block)
            yield item
          end
        end
      end
      tasks
    end

    # Yields each item like Enumerable#each_entry: several values at once become an Array. A Queue yields until it is
    # closed and empty.
    def self.each_of(items)
      return items.each { |*values| yield values.size > 1 ? values : values.first } unless items.is_a?(Thread::Queue)

      while (found = next_in(items))
        yield found.first
      end
    end

    # Takes the next item of the queue. A nil that comes while this waits is taken for the end if the queue is closed
    # before this goes on.
    # @return [Array(Object), nil] nil: the queue is closed and empty
    def self.next_in(queue)
      until queue.empty?
        begin
          return [queue.pop(true)]
        rescue ThreadError
          next # another thread has taken the last item
        end
      end
      item = queue.pop
      [item] unless item.nil? && queue.closed? && queue.empty?
    end
    private_class_method :next_in

    private

    def begin_in(scope)
      @ended = Completion.new("one of its items", awaited: scope)
      scope
    end

    def feed
      FanOut.each_of(@items) do |item|
        @running += 1
        yield item, @count
        @count += 1
        take_ended while @running >= @limit && !@error
        break if @error
      end
      take_ended until @running.zero? || @error
      # The scope raises its first failure, but does not count a Cancelled as one.
      raise @error if @error.is_a?(Cancelled)
    end

    def take_ended
      @ended.pop
      @running -= 1
    end

    def perform(item, index)
      yield item, index
      @progress&.call(@done += 1)
      succeeded = true
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      @error ||= e
      raise
    ensure
      @error ||= Cancelled.new("the fiber of a task was killed") unless succeeded
      @ended << true
    end

    # @param error [Exception, nil] the error of an item's task
    def settled(error)
      given_up = [Cancelled, *FOR_THE_PROGRAM].any? { |kind| error.is_a?(kind) }
      @progress&.call(@done += 1) unless given_up
    ensure
      @ended << true
    end
  end
  private_constant :FanOut
end
