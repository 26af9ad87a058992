# frozen_string_literal: true

# Solid Queue: its supervisor, and the workers that this forks. One process enqueues jobs when it gets their number.

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "solid_queue"
require_relative "work"
require "heddle/solid_queue" if Work::TASKS
require "tmpdir"

class Application < Rails::Application
  config.root = Dir.tmpdir
  config.eager_load = true
  config.secret_key_base = "of a benchmark"
  config.logger = Logger.new($stderr)
  config.log_level = :fatal
  config.active_support.isolation_level = Work::TASKS ? :fiber : :thread
  config.active_job.queue_adapter = :solid_queue
end
Application.initialize!

BenchJob = Class.new(ActiveJob::Base) { def perform(...) = Work.perform(...) }

ActiveRecord::Schema.verbose = false
load File.join(Gem.loaded_specs["solid_queue"].full_gem_path,
               "lib/generators/solid_queue/install/templates/db/queue_schema.rb")

SolidQueue.on_worker_start { Work.ready }
Thread.new do
  ActiveRecord::Base.connection_pool.with_connection do |connection|
    raw = connection.raw_connection
    raw.exec("LISTEN enqueue")
    raw.exec("INSERT INTO ready DEFAULT VALUES") # (before that a notification would be lost)
    loop do
      raw.wait_for_notify do |_, _, numbers|
        first, count = numbers.split.map { |text| Integer(text) }
        now = Process.clock_gettime(Process::CLOCK_REALTIME)
        ActiveJob.perform_all_later(Array.new(count) { |index| BenchJob.new(first + index, now) })
      end
    end
  end
end

SolidQueue::Supervisor.start(
  workers: [{ queues: "*", (Work::TASKS ? :fibers : :threads) => Work::CONCURRENCY, polling_interval: 0.05,
              processes: Integer(ENV.fetch("BENCH_PROCESSES")) }],
  dispatchers: [], skip_recurring: true
)
