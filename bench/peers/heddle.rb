# frozen_string_literal: true

heddle = lambda do
  $LOAD_PATH.unshift(File.expand_path("../lib", Bench::ROOT))
  require "heddle"
  Class.new(Bench::SchedulerAdapter) do
    def run(&) = Heddle.run(&)

    def backend = Heddle.run { Fiber.scheduler.backend }
  end.new
end

tasks = lambda do
  heddle.call.tap { |adapter| adapter.define_singleton_method(:spawn) { |&block| Heddle.spawn(&block) } }
end

missing = lambda do
  built = Dir[File.expand_path("../lib/{heddle,heddle/*}/heddle_native.so", Bench::ROOT)]
  "not built: run bin/build" if built.empty?
end

Bench.peer("heddle", prepare: missing, &heddle)

# On request: with Heddle.spawn in place of Fiber.schedule; and with one backend or the other.
Bench.peer("heddle-tasks", prepare: missing, default: false, &tasks)
Bench.peer("heddle-uring", prepare: missing, env: { "HEDDLE_BACKEND" => "uring" }, default: false, &heddle)
Bench.peer("heddle-epoll", prepare: missing, env: { "HEDDLE_BACKEND" => "epoll" }, default: false, &heddle)
