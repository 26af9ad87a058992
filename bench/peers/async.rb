# frozen_string_literal: true

# As Async's users start it; the tasks inside are plain Fiber.schedule, as for everybody.
async = lambda do
  require "async"
  adapter = Class.new(Bench::SchedulerAdapter) do
    def run(&) = Async(&).wait

    def backend = IO::Event::Selector.default.name[/\w+\z/]
  end
  adapter.new { Async::Scheduler.new }
end

Bench.peer("async", gems: %w[async], ruby: ">= 3.3", &async)

# On request: the same with one backend or the other.
Bench.peer("async-epoll", gems: %w[async], ruby: ">= 3.3", env: { "IO_EVENT_SELECTOR" => "EPoll" },
                          default: false, &async)
Bench.peer("async-uring", gems: %w[async], ruby: ">= 3.3", env: { "IO_EVENT_SELECTOR" => "URing" },
                          default: false, &async)
