# frozen_string_literal: true

require "heddle"
require "socket"
require "timeout"

# For the test of the guard: Heddle, as it is after a change by which each operation of a task makes one more object,
# call, system call and look at the kernel, and lets the other tasks run once more.
module WorseHeddle
  class << self
    def pay
      return unless (scheduler = Fiber.current_scheduler)

      4.times do
        Process.getpgrp
        Fiber.new { Object.new }.resume
        scheduler.kernel_sleep(0.000_001)
      end
    end

    # Each of these methods pays first.
    def worsen(place, *names)
      place.prepend(Module.new do
        names.each do |name|
          define_method(name) do |*arguments, **options, &block|
            WorseHeddle.pay
            super(*arguments, **options, &block)
          end
        end
      end)
    end
  end
end

Heddle.run { nil } # so that Ruby's methods are replaced before
WorseHeddle.worsen(Fiber.singleton_class, :schedule)
WorseHeddle.worsen(Object, :sleep)
WorseHeddle.worsen(Thread::Queue, :pop)
WorseHeddle.worsen(Timeout.singleton_class, :timeout)
WorseHeddle.worsen(IO, :readpartial, :gets, :read, :close)
WorseHeddle.worsen(IO.singleton_class, :select, :read)
WorseHeddle.worsen(BasicSocket, :recv)
