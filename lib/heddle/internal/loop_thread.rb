# frozen_string_literal: true

require_relative ".."

module Heddle
  # A thread that runs tasks for other threads, until it is closed. The engines for jobs have one each
  # (heddle/sidekiq, heddle/solid_queue).
  #
  # A task is isolated: its failure is its own. What it spawns belongs to it.
  class LoopThread
    # @yieldparam work [Proc] what the thread has to call
    # @yieldreturn [Thread]
    def initialize
      @orders = Thread::Queue.new
      @scheduler = nil
      @thread = yield(method(:work).to_proc)
    end

    # Starts the block as a task, without a wait for its start. For any thread, this one as well.
    #
    # @param name [String, nil] for reports
    # @param refused [#call, nil] is called if the thread ends before the task has started
    # @return [void]
    # @raise [Heddle::Error] when the thread has ended
    def post(name = nil, refused: nil, &block)
      @orders << [name, block, refused]
    rescue ClosedQueueError
      raise Error, "the thread of the tasks has ended"
    end

    # Raises the error in a task of this thread, where it waits, as Thread#raise does in a thread. For any thread. Does
    # nothing if the task has ended.
    #
    # @param task [Heddle::Task]
    # @param error [Exception]
    # @return [void]
    def interrupt(task, error)
      fiber = task.fiber
      @scheduler.interrupt(fiber, error) if fiber
    end

    # It ends when all tasks have ended that were posted before.
    # @return [void]
    def close = @orders.close

    # @return [Boolean] does it take no more? After a close, and when an exception has ended the thread.
    def closed? = @orders.closed?

    # @param timeout [Numeric, nil] seconds
    # @return [Thread, nil] nil if it has not ended by then
    def join(timeout = nil) = @thread.join(timeout)

    private

    def work
      Heddle.run do
        @scheduler = Fiber.scheduler
        scope = Scope.current
        while (order = @orders.pop)
          start(scope, *order)
        end
      ensure
        refuse_orders # (not later: a task that ends with the thread may wait for another one)
      end
    ensure
      refuse_orders
    end

    # (Where this thread is killed just now, it may not start.)
    def start(scope, name, block, refused)
      started = false
      scope.spawn_isolated(name) do
        started = true
        block.call
      end
    ensure
      refused&.call unless started
    end

    def refuse_orders
      @orders.close
      @orders.pop.last&.call until @orders.empty?
    end
  end
  private_constant :LoopThread
  private_constant :LoopThread
end
