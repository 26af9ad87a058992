# frozen_string_literal: true

require_relative ".."

module Heddle
  # A thread that runs tasks for other threads, until it is closed. The adapters for job engines have one each
  # (heddle/sidekiq, heddle/solid_queue).
  #
  # A task is isolated: its failure ends no other task. The tasks that it spawns belong to it.
  class LoopThread
    # @param time_slice [Numeric, false, nil] see Heddle.run
    # @yieldparam work [Proc] the work that the thread has to call
    # @yieldreturn [Thread]
    def initialize(time_slice: nil)
      @time_slice = time_slice
      @orders = Thread::Queue.new
      @scheduler = nil
      @thread = yield(method(:work).to_proc)
    end

    # Starts the block as a task, without a wait for its start. Any thread may call it, also this one.
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

    # Raises the error in a task of this thread, where it waits, as Thread#raise does in a thread. Any thread may call
    # it. Does nothing if the task has ended.
    #
    # @param task [Heddle::Task]
    # @param error [Exception]
    # @return [void]
    def interrupt(task, error)
      fiber = task.fiber
      @scheduler.interrupt(fiber, error) if fiber
    end

    # The thread ends when all tasks that were posted before have ended.
    # @return [void]
    def close = @orders.close

    # @return [Boolean] does it refuse further tasks? This is the case after a close, and when an exception has ended
    #   the thread.
    def closed? = @orders.closed?

    # @param timeout [Numeric, nil] seconds
    # @return [Thread, nil] nil if it has not ended by then
    def join(timeout = nil) = @thread.join(timeout)

    private

    def work
      Heddle.run(time_slice: @time_slice) do
        @scheduler = Fiber.scheduler
        scope = Scope.current
        while (order = @orders.pop)
          start(scope, *order)
        end
      ensure
        refuse_orders # not later: a task that ends with the thread may wait for another one
      end
    ensure
      refuse_orders
    end

    # Runs the block in a task, or else calls refused, once. A hook of Heddle.on_spawn may wait before the block begins,
    # or may fail. The task may not start at all if this thread is killed at this moment.
    def start(scope, name, block, refused)
      decided = false
      refuse = lambda do
        refused&.call unless decided
        decided = true
      end
      task = scope.spawn_isolated(name, ended: refuse) do
        next if decided

        decided = true
        block.call
      end
    ensure
      refuse.call unless task
    end

    # One that fails keeps no other one from hearing of it.
    def refuse_orders
      failure = nil
      @orders.close
      until @orders.empty?
        begin
          @orders.pop.last&.call
        rescue StandardError => e
          failure ||= e
        end
      end
      raise failure if failure
    end
  end
  private_constant :LoopThread
end
