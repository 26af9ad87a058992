# frozen_string_literal: true

Bench.peer("carbon_fiber", gems: %w[carbon_fiber], ruby: ">= 3.4") do
  require "carbon_fiber"
  Bench::SchedulerAdapter.new { CarbonFiber::Scheduler.new }
end
