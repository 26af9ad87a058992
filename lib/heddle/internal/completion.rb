# frozen_string_literal: true

module Heddle
  using Internal

  # A queue on which others wait until something has ended. It is closed then, or something is put into it. Heddle.dump
  # names it.
  class Completion < Thread::Queue
    # @param parts [Array<Object>] what it is that ends: words, and objects to be shown as inspect does
    # @param awaited [Task, Scope, nil] the same, if it is a task or the tasks of a scope
    def initialize(*parts, awaited: nil)
      super()
      @parts = parts
      @awaited = awaited
    end

    # Does it need the end of this task, or of one that waits for the task because it has opened its scope?
    #
    # @param task [Task, nil]
    def awaits?(task)
      while task && @awaited
        scope = task.scope
        return true if @awaited.equal?(task) || (@awaited.equal?(scope) && !task.background?)

        task = (scope.task unless scope.nil? || scope.task.equal?(task))
      end
      false
    end

    # Waits until it is closed by a fiber of the scheduler. It lets the others run also in a blocking fiber, where Ruby
    # would stop the whole thread, and with it those that are waited for.
    #
    # @param scheduler [Scheduler]
    # @param timeout [Numeric, nil] seconds
    # @return [void]
    def wait(scheduler, timeout = nil)
      sleep(0) if timeout&.zero? # (pop does not let the others run: who asks over and over would never hear of it)
      return pop(timeout:) unless Fiber.current.blocking? && Fiber.scheduler.equal?(scheduler)

      begin
        (@blocking_fibers ||= []) << Fiber.current
        scheduler.wait_until_closed(self, timeout)
      ensure
        @blocking_fibers&.delete(Fiber.current)
      end
    end

    # Wakes all who wait for it.
    def close
      super
      @blocking_fibers&.each { |fiber| Fiber.scheduler&.unblock(self, fiber) }
      self
    end

    # @return [String]
    def name = @parts.map { |part| part.is_a?(String) ? part : part.inspect }.join(" ")
  end
  private_constant :Completion
  private_constant :Completion
end
