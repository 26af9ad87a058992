# frozen_string_literal: true

module Heddle
  # Runs callables at the same time, each in a task and a scope of its own, until one of them is good enough.
  class Contest
    # @param callables [Array<#call>]
    # @raise [ArgumentError] if none is given, or one of them has no +call+
    def initialize(callables)
      Check.refuse("callables: at least one is needed") if callables.empty?

      callables.each { |callable| Check.responds("callables", callable, :call) }
      @waiting = callables.dup
      @tasks = []
      @ended = Thread::Queue.new # the numbers of the tasks that have ended
    end

    # Waits for the first callable that is good enough, cancels the others, and waits for their end.
    #
    # @yieldparam task [Heddle::Task] a task that has ended: is it good enough?
    # @return [Heddle::Task, nil] the first task that was good enough; nil: all have ended, and none was good enough
    def winner(&)
      Heddle.run do
        first_of_ended(&)
      ensure
        @tasks.each(&:cancel)
      end
    end

    # @return [Array<Exception>] the errors of the tasks that were started, in their order
    def errors = @tasks.filter_map(&:error)

    private

    # If a callable is good enough before it waits, the next ones are not started.
    def first_of_ended
      open = @waiting.size
      until open.zero?
        start until @waiting.empty? || !@ended.empty?
        task = @tasks[@ended.pop].wait
        return task if yield task

        open -= 1
      end
    end

    def start
      number = @tasks.size
      callable = @waiting.shift
      @tasks << Scope.current.spawn_isolated(ended: -> { @ended << number }) do
        Task.match_apart(callable)
        callable.call
      end
    end
  end
  private_constant :Contest
end
