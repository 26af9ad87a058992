# frozen_string_literal: true

module Bench
  # Runs a row under a Fiber::Scheduler, the way its users do without any API of its own.
  class SchedulerAdapter
    # The block makes a scheduler for the current thread.
    def initialize(&make)
      @make = make
    end

    # Runs the block as the first task; returns once all tasks have ended.
    def run(&)
      error = nil
      Fiber.set_scheduler(@make.call)
      spawn { error = failure_of(&) }
      finish
      raise error if error
    end

    # Starts one task.
    def spawn(&) = Fiber.schedule(&)

    # Starts a second thread, which runs the block as a task of its own scheduler.
    def thread(&) = Thread.new { run(&) }

    private

    def finish = Fiber.set_scheduler(nil)

    def failure_of
      yield
      nil
    rescue StandardError => e
      e
    end
  end

  # One thread per task.
  class ThreadAdapter
    def run
      @threads = []
      yield
      # A task may start others while the first ones are waited for.
      @threads.shift.join until @threads.empty?
    end

    def spawn(&)
      @threads << Thread.new(&)
    end

    def thread(&) = Thread.new(&)
  end
end
