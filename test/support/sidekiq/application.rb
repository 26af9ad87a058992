# frozen_string_literal: true

# What Sidekiq runs in test/jobs/sidekiq_test.rb, in a process of its own: `sidekiq -r application.rb`. The environment
# says how.

require "sidekiq"
require "json"
require "heddle"

if ENV["TEST_ISOLATION"]
  require "active_support"
  require "active_support/isolated_execution_state"
end

case ENV.fetch("TEST_MODE")
when "heddle" then require "heddle/sidekiq"
when "mixed"
  require "heddle/sidekiq"
  Heddle::Sidekiq.keep_threads("threaded")
end
Heddle::Sidekiq.time_slice = Float(ENV["TEST_TIME_SLICE"]) if ENV["TEST_TIME_SLICE"]

REPORT = "report"

# What a job has seen goes to a list in Redis.
def report(*facts) = Sidekiq.redis { |redis| redis.call("RPUSH", REPORT, JSON.generate(facts)) }

LOCK = Mutex.new

# A log that takes its time for each line.
class LateLog
  def write(text)
    sleep(0.01)
    $stdout.syswrite(text)
  end

  def close = nil
end

# A server middleware.
class Marks
  include Sidekiq::ServerMiddleware

  def call(_instance, _job, _queue)
    Thread.current[:marked] = (Thread.current[:marked] || 0) + 1
    yield
  ensure
    Thread.current[:marked] = nil
  end
end

Sidekiq.configure_server do |config|
  config.average_scheduled_poll_interval = 1
  config[:poll_interval_average] = 0.2
  config.server_middleware { |chain| chain.add(Marks) }
  config.error_handlers << ->(error, context, _config) { report("error", error.message, context.dig(:job, "class")) }
  config.death_handlers << ->(job, error) { report("death", job["class"], error.message) }
  %i[startup quiet shutdown exit].each { |event| config.on(event) { report("event", event) } }
  if ENV["TEST_RELIABLE"]
    require "heddle/sidekiq"
    Heddle::Sidekiq.fetch_reliably(config)
  end
  if ENV["TEST_LOCK"] # which a job may have
    %i[quiet shutdown exit].each { |event| config.on(event) { LOCK.synchronize { nil } } }
  end
  config.logger = Logger.new(LateLog.new) if ENV["TEST_LOG"]
  if ENV["TEST_CAPSULE"]
    config.capsule("threaded") do |capsule|
      capsule.concurrency = 2
      capsule.queues = %w[threaded]
    end
  end
end

# Waits, and tells which thread and what else it has.
class Wait
  include Sidekiq::Job

  def perform(seconds, number = nil)
    context = Thread.current[:sidekiq_context][:jid]
    report("began", number)
    sleep(seconds)
    report("done", number, Thread.current.name, Thread.current[:marked], context == jid,
           Thread.current[:sidekiq_context][:jid] == jid, tid)
  end

  private

  def tid = Thread.current["sidekiq_tid"]
end

# As many at once as there are: each waits for all others.
class Meet
  include Sidekiq::Job

  def perform(count)
    Sidekiq.redis { |redis| redis.call("INCR", "meeting") }
    sleep(0.02) until Sidekiq.redis { |redis| redis.call("GET", "meeting") }.to_i >= count
    report("met")
  end
end

# Fails this number of times.
class Fail
  include Sidekiq::Job

  sidekiq_options retry: 1

  def perform(times)
    count = Sidekiq.redis { |redis| redis.call("INCR", "failed:#{jid}") }
    raise ArgumentError, "failure #{count}" if count <= times

    report("recovered", count)
  end
end

# Spawns tasks, which see what it has.
class Spawn
  include Sidekiq::Job

  sidekiq_options retry: false

  def perform(fails)
    Heddle.spawn do
      sleep(0.01)
      raise "the task failed" if fails

      report("spawned", Thread.current[:sidekiq_context][:jid] == jid, !Thread.current[:sidekiq_capsule].nil?)
    end
  end
end

# Goes on where it was interrupted.
class Iterate
  include Sidekiq::IterableJob

  def build_enumerator(count, _stays = nil, cursor:) = array_enumerator([*0...count], cursor:)

  def each_iteration(number, _count, stays = nil)
    sleep(0.05)
    report("iterated", number, ::Process.pid)
    sleep(60) if stays
  rescue Sidekiq::Shutdown
    raise unless stays
  end
end

# Has to be pushed back, and cleans up.
class Stubborn
  include Sidekiq::Job

  def perform(seconds)
    report("begun")
    sleep(seconds)
    report("ended")
  ensure
    Thread.current[:cleaned] = true
    sleep(seconds) if seconds > 50
  end
end

# Tells its beginning and its end.
class Slow
  include Sidekiq::Job

  def perform(number)
    report("begun", number)
    sleep(2)
    report("done", number)
  end
end

# Ends its thread from another one, for once.
class Break
  include Sidekiq::Job

  def perform
    thread = Thread.current
    key = "broken:#{jid}"
    return report("again") unless Sidekiq.redis { |redis| redis.call("SET", key, 1, "NX") }

    Thread.new { thread.raise(IOError, "from outside") }
    sleep(2)
  end
end

# Ends its process.
class Kill
  include Sidekiq::Job

  def perform(others = 0)
    sleep(0.02) until Sidekiq.redis { |redis| redis.call("LLEN", "stays") } >= others
    ::Process.kill(:KILL, ::Process.pid)
  end
end

# Stays until a process has ended twice with it.
class Stay
  include Sidekiq::Job

  def perform(number)
    Sidekiq.redis { |redis| redis.call("RPUSH", "stays", number) }
    sleep(0.02) until Sidekiq.redis { |redis| redis.call("EXISTS", "go") } == 1
    report("done", number)
  end
end

# Holds up all others.
class Compute
  include Sidekiq::Job

  def perform(seconds)
    Fiber.blocking { report("computes") } # no other job begins between the report and the computing
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
    report("computed")
  end
end

# Has a lock and a connection, or goes for the log, while another one computes.
class Hold
  include Sidekiq::Job

  def perform(what)
    report("holds")
    case what
    when "lock" then Sidekiq.redis { LOCK.synchronize { sleep(60) } }
    when "log" then loop { logger.info("a line") && sleep(0.01) }
    end
  end
end

# Takes the Shutdown for any other error.
class Swallow
  include Sidekiq::Job

  def perform(then_fails)
    report("begun")
    sleep(60)
  rescue Exception
    raise "an error of its own" if then_fails
  end
end

# Leaves a line in a file, and does nothing in Redis. If it gets a gate, it waits until this file is there.
class Write
  include Sidekiq::Job

  def perform(path, gate = nil)
    sleep(0.05) until gate.nil? || File.exist?(gate)
    File.write(path, "done\n", mode: "a")
  end
end

require_relative "libraries" if ENV["TEST_LIBRARIES"]
