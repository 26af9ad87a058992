# frozen_string_literal: true

# An application whose workers run in test/jobs/solid_queue_*_test.rb. DATABASE_URL and TEST_FOLDER say where.

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "solid_queue"
require "heddle/solid_queue"

class Application < Rails::Application
  config.root = ENV.fetch("TEST_FOLDER")
  config.eager_load = false
  config.secret_key_base = "of a test"
  config.logger = Logger.new($stderr)
  config.log_level = :fatal
  config.active_support.isolation_level = ENV.fetch("TEST_ISOLATION", "fiber").to_sym
  config.active_job.queue_adapter = :solid_queue
  config.i18n.available_locales = %i[en de]
  config.solid_queue.shutdown_timeout = 1
  # The supervisor forks. Where a thread of its waits for SQLite's lock at that moment (in Ruby, inside of a call of
  # SQLite), the child waits for this thread for ever. So it shows no sign of life beside that.
  config.solid_queue.process_heartbeat_interval = ENV.fetch("DATABASE_URL").start_with?("sqlite3") ? 60 : 1
  alive = ENV.fetch("TEST_ALIVE", nil) and config.solid_queue.process_alive_threshold = Integer(alive).seconds
  config.solid_queue.on_thread_error = lambda do |error|
    Report.tell("thread error", error.message)
  rescue ActiveRecord::ActiveRecordError
    warn(error.message.lines.first) # the database is down
  end
  config.solid_queue.use_skip_locked = !ENV.fetch("DATABASE_URL").start_with?("sqlite3")
end
Application.initialize!

# Since Rails 8.1 the setting has another name.
size = ENV.fetch("DATABASE_URL").start_with?("sqlite3") || ActiveRecord.version < "8.1" ? "pool" : "max_connections"
ActiveRecord::Base.establish_connection("#{ENV.fetch("DATABASE_URL")}?#{size}=8&timeout=20000")

# What jobs have seen.
class Report < ActiveRecord::Base
  def self.tell(word, *facts) = create!(word:, facts: JSON.generate(facts))

  def self.with(word) = where(word:).order(:id).map { |report| JSON.parse(report.facts) }

  # Those of Solid Queue, too.
  def self.make_tables
    ActiveRecord::Migration.verbose = ActiveRecord::Schema.verbose = false
    load File.join(Gem.loaded_specs["solid_queue"].full_gem_path,
                   "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
    ActiveRecord::Schema.define do
      create_table(:reports, force: true) { |table| table.string(:word) && table.text(:facts) }
    end
  end
end

class Current < ActiveSupport::CurrentAttributes
  attribute :number
end

# Each of them waits until this number has begun.
class MeetJob < ActiveJob::Base
  def perform(count, number)
    Current.number = number
    Report.tell("begun", number)
    sleep(0.5) until Report.uncached { Report.where(word: "begun").count } >= count
    Report.tell("met", number, Current.number, Thread.current.name)
  end
end

class SlowJob < ActiveJob::Base
  def perform(seconds, number)
    Report.tell("started", number)
    sleep(seconds)
    Report.tell("done", number)
  end
end

# Runs until a file is there.
class GateJob < ActiveJob::Base
  OPEN = File.join(ENV.fetch("TEST_FOLDER"), "open")

  def perform(number)
    Report.tell("started", number)
    sleep(0.05) until File.exist?(OPEN)
    Report.tell("done", number)
  end
end

class FailJob < ActiveJob::Base
  retry_on(ArgumentError, wait: 0, attempts: 2)

  def perform(error) = raise(error.constantize, "attempt #{executions}")
end

# Its tasks see what it has.
class SpawnJob < ActiveJob::Base
  def perform(fails)
    Current.number = 7
    Heddle.spawn do
      sleep(0.01)
      raise IOError, "the task failed" if fails

      Report.tell("spawned", Current.number)
    end
  end
end

# A transaction of each: they do not see each other's.
class TransactionJob < ActiveJob::Base
  def perform(number)
    Report.transaction do
      Report.tell("transaction", number)
      sleep(0.02)
      raise ActiveRecord::Rollback if number.odd?
    end
  end
end

# Keeps a connection while it waits, and says what else it has.
class HoldJob < ActiveJob::Base
  def perform(seconds)
    Report.transaction do
      Report.tell("held", I18n.locale, Time.zone.name)
      sleep(seconds)
    end
  end
end

# Has a role and a shard for a while.
class PlaceJob < ActiveJob::Base
  def perform(number)
    role, shard = [%i[reading one], %i[writing two]][number % 2]
    seen = ActiveRecord::Base.connected_to(role:, shard:) { sleep(0.05) && place }
    Report.tell("placed", seen, place)
  end

  def place = [ActiveRecord::Base.current_role, ActiveRecord::Base.current_shard]
end

# Only one runs at a time.
class AloneJob < ActiveJob::Base
  limits_concurrency to: 1, key: "alone", duration: 1.hour

  def perform(number)
    Report.tell("alone", "begins", number)
    sleep(0.02)
    Report.tell("alone", "ends", number)
  end
end

# Computes until a file is there, and never waits meanwhile.
class ComputeJob < ActiveJob::Base
  GO = File.join(ENV.fetch("TEST_FOLDER"), "go")

  def perform
    Report.tell("computes", Fiber.scheduler.send(:time_slice))
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    1 until File.exist?(GO) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
    Report.tell("computed")
  end
end

# Each second (recurring.yml).
class TickJob < ActiveJob::Base
  def perform = Report.tell("tick", Thread.current.name)
end
