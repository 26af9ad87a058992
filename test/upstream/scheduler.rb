# frozen_string_literal: true

# Stands in for CRuby's test/fiber/scheduler.rb: the classes that its tests name, on top of Heddle::Scheduler.
# run.rb copies it beside them, behind a line that sets the load path (their subprocesses run without gems).

require "io/nonblock"
require "socket"
require "heddle"

class Scheduler < Heddle::Scheduler
  def initialize(fiber = Fiber.current)
    @fiber = fiber
    super(backend: ENV.fetch("HEDDLE_UPSTREAM_BACKEND"))
  end

  # What the reference implementation offers beside the hooks.
  def waiting = fibers

  def transfer = @fiber.transfer
end

class IOBufferScheduler < Scheduler
end

# Notes what is written.
class IOScheduler < Scheduler
  def operations
    @operations ||= []
  end

  def io_write(io, buffer, length, offset)
    operations << [:io_write, io.fileno, buffer.get_string]
    super
  end
end

class IOErrorScheduler < Scheduler
  def io_read(*) = -Errno::EBADF::Errno

  def io_write(*) = -Errno::EINVAL::Errno
end

class BrokenUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super
    raise "Broken unblock!"
  end
end

class SleepingUnblockScheduler < Scheduler
  def unblock(blocker, fiber)
    super
    sleep(0.1)
  end
end

class SleepingBlockingScheduler < Scheduler
  def kernel_sleep(duration = nil)
    Fiber.blocking { sleep 0.0001 }
    block(:sleep, duration)
    true
  end
end
