# frozen_string_literal: true

heddle = lambda do
  $LOAD_PATH.unshift(File.expand_path("../lib", Bench::ROOT))
  require "heddle"
  adapter = Class.new(Bench::SchedulerAdapter) do
    def run(&) = Heddle.run(&)

    def backend = Heddle.run { Fiber.scheduler.backend }
  end
  adapter.new { Heddle::Scheduler.new }
end

tasks = lambda do
  heddle.call.tap { |adapter| adapter.define_singleton_method(:spawn) { |&block| Heddle.spawn(&block) } }
end

accelerated = lambda do
  heddle.call.tap { require "heddle/accelerate/net_http" }
end

missing = lambda do
  built = Dir[File.expand_path("../lib/{heddle,heddle/*}/heddle_native.so", Bench::ROOT)]
  "not built: run bin/build" if built.empty?
end

# With one backend and with the other, so that both are in each table.
%w[uring epoll].each do |backend|
  unavailable = lambda do
    reason = missing.call and next reason

    $LOAD_PATH.unshift(File.expand_path("../lib", Bench::ROOT))
    require "heddle"
    known = Heddle.backends.find { |one| one[:name] == backend }
    known[:reason].to_s unless known[:available]
  end
  Bench.peer("heddle-#{backend}", prepare: unavailable, env: { "HEDDLE_BACKEND" => backend }, &heddle)
end

# On request: the backend that Heddle chooses; with time slices; with Net::HTTP accelerated; and with Heddle.spawn in
# place of Fiber.schedule.
Bench.peer("heddle", prepare: missing, default: false, &heddle)
Bench.peer("heddle-sliced", prepare: missing, default: false, env: { "HEDDLE_TIME_SLICE" => "0.005" }, &heddle)
Bench.peer("heddle-accelerated", prepare: missing, default: false, &accelerated)
Bench.peer("heddle-tasks", prepare: missing, default: false, &tasks)
