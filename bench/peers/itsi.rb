# frozen_string_literal: true

Bench.peer("itsi", gems: %w[itsi-scheduler], ruby: ">= 3.1") do
  require "itsi/scheduler"
  Bench::SchedulerAdapter.new { Itsi::Scheduler.new }
end
