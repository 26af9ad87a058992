# frozen_string_literal: true

module Heddle
  using Internal

  # A queue that is closed when something has ended, and never filled: what others wait on. Heddle.dump names it.
  class Completion < Thread::Queue
    # @param parts [Array<Object>] what it is that ends: words, and objects to be shown as inspect does
    def initialize(*parts)
      super()
      @parts = parts
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
end
