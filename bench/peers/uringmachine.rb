# frozen_string_literal: true

Bench.peer("uringmachine", gems: %w[uringmachine], ruby: ">= 3.5") do
  require "uringmachine"
  require "uringmachine/fiber_scheduler"
  adapter = Class.new(Bench::SchedulerAdapter) do
    # Its close waits for the tasks of that moment only, so wait here until no task has started another.
    def finish
      scheduler = Fiber.scheduler
      scheduler.join while scheduler.fiber_map.keys.any?
      super
    end
  end
  adapter.new { UringMachine::FiberScheduler.new }
end
