# frozen_string_literal: true

require_relative "../heddle"

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

    # Starts the block as a task, and returns when it has started. For any thread, this one as well.
    #
    # @param name [String, nil] for reports
    # @return [Heddle::Task]
    # @raise [Heddle::Error] when the thread has ended
    def start(name = nil, &block)
      answer = Thread::Queue.new
      order(name, block, answer)
      answer.pop || raise(Error, "the thread of the tasks has ended")
    end

    # The same, without a wait for its start.
    #
    # @param name [String, nil] for reports
    # @return [void]
    def post(name = nil, &block) = order(name, block, nil)

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

    # It ends when all tasks have ended that were started, or posted, before.
    # @return [void]
    def close = @orders.close

    # @return [Boolean] does it take no more? After a close, and when an exception has ended the thread.
    def closed? = @orders.closed?

    # @param timeout [Numeric, nil] seconds
    # @return [Thread, nil] nil if it has not ended by then
    def join(timeout = nil) = @thread.join(timeout)

    private

    def order(name, block, answer)
      @orders << [name, block, answer]
    rescue ClosedQueueError
      raise Error, "the thread of the tasks has ended"
    end

    def work
      Heddle.run do
        @scheduler = Fiber.scheduler
        scope = Scope.current
        while (name, block, answer = @orders.pop)
          task = scope.spawn_isolated(name, &block)
          answer&.push(task)
        end
      ensure
        refuse_orders # (not later: a task that ends with the thread may wait for an answer)
      end
    ensure
      refuse_orders
    end

    def refuse_orders
      @orders.close
      @orders.pop.last&.close until @orders.empty?
    end
  end
  private_constant :LoopThread
end
