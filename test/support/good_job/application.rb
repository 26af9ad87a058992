# frozen_string_literal: true

# An application of GoodJob for test/jobs/good_job_test.rb. DATABASE_URL says where its jobs are.

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "good_job"
require "heddle/rails"

class Application < Rails::Application
  config.root = __dir__
  config.eager_load = false
  config.secret_key_base = "of a test"
  config.logger = Logger.new($stderr)
  config.log_level = :fatal
  config.active_support.isolation_level = :fiber
  config.active_job.queue_adapter = :good_job
  config.good_job.execution_mode = :async
  config.good_job.max_threads = 5
  config.good_job.poll_interval = 1
  config.good_job.shutdown_timeout = 2
  config.good_job.preserve_job_records = true
end
Application.initialize!

# What jobs have seen.
class Report < ActiveRecord::Base
  def self.tell(word, number, *facts) = create!(word:, number:, facts: JSON.generate(facts))
end

# Runs until the table of reports has the word "go".
class WaitJob < ActiveJob::Base
  def perform(number)
    Report.tell("began", number, Process.pid)
    sleep(0.05) until Report.uncached { Report.exists?(word: "go") }
    Report.tell("done", number, Thread.current.name, Fiber.current_scheduler.nil?)
  end
end

# Takes a part of a second.
class ShortJob < ActiveJob::Base
  def perform(number)
    Report.tell("began", number, Process.pid)
    sleep(0.5)
    Report.tell("done", number)
  end
end

# Computes until a file is there.
class ComputeJob < ActiveJob::Base
  def perform(path)
    Report.tell("computes", 0)
    nil until File.exist?(path)
    Report.tell("computed", 0)
  end
end

# Has tasks, which use the database.
class TasksJob < ActiveJob::Base
  def perform(number)
    Heddle.map(1..3) { |part| sleep(0.01) && Report.tell("part", part, number) }
  end
end
