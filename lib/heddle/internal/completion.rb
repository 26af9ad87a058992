# frozen_string_literal: true

module Heddle
  using Internal

  # A queue on which fibers and threads wait until something has ended. Then it is closed, or something is put into it.
  # Heddle.dump shows its name.
  class Completion < Thread::Queue
    # @param parts [Array<Object>] describe what ends: words, and objects that are shown by inspect
    # @param awaited [Task, Scope, nil] the object that ends, if it is a task or the tasks of a scope
    def initialize(*parts, awaited: nil)
      super()
      @parts = parts
      @awaited = awaited
    end

    # Does its end depend on this task, or on a task that waits for the task because it has opened its scope?
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

    # Waits until a fiber of the scheduler closes it. Other fibers run also while a blocking fiber waits, where Ruby
    # would stop the whole thread, and with it the awaited tasks.
    #
    # @param scheduler [Scheduler]
    # @param timeout [Numeric, nil] seconds
    # @return [void]
    def wait(scheduler, timeout = nil)
      sleep(0) if timeout&.zero? # pop lets no other fiber run: a caller that polls would wait for ever
      return pop(timeout:) unless Fiber.current.blocking? && Fiber.scheduler.equal?(scheduler)

      begin
        (@blocking_fibers ||= []) << Fiber.current
        scheduler.wait_until_closed(self, timeout)
      ensure
        @blocking_fibers&.delete(Fiber.current)
      end
    end

    # Wakes all fibers and threads that wait for it.
    def close
      super
      @blocking_fibers&.each { |fiber| Fiber.scheduler&.unblock(self, fiber) }
      @receivers&.dup&.each(&:wake)
      self
    end

    # @param receiver [Selection] is woken, too
    def add_receiver(receiver) = (@receivers ||= []) << receiver

    def remove_receiver(receiver) = @receivers.delete(receiver)

    # @return [String]
    def name = @parts.map { |part| part.is_a?(String) ? part : part.inspect }.join(" ")
  end
  private_constant :Completion
end
