# frozen_string_literal: true

# Libraries that change Sidekiq, for test/jobs/sidekiq_libraries_test.rb. (job-iteration needs some of Rails.)

require "active_job"
require "active_model"
require "rails"
require "active_record"
require "job-iteration"
require "sidekiq-cron"
require "sidekiq-unique-jobs"

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
ActiveJob::Base.queue_adapter = :sidekiq
ActiveJob::Base.logger = nil

# Each second.
class EachSecond
  include Sidekiq::Job

  def perform = report("cron", Thread.current.name)
end

# Only one of these is in the queue.
class UntilExecuted
  include Sidekiq::Job

  sidekiq_options lock: :until_executed, on_conflict: :log

  def perform = report("unique")
end

# Only one of these runs. With on_conflict: :raise, a job that dies would take the lock away from the running job.
class WhileExecuting
  include Sidekiq::Job

  sidekiq_options lock: :while_executing, on_conflict: :log, retry: false

  def perform
    Sidekiq.redis { |redis| redis.call("SADD", "running", jid) }
    report("overlap") unless Sidekiq.redis { |redis| redis.call("SCARD", "running") } == 1
    sleep(0.2)
    report("executed")
  ensure # the end of the process may interrupt it at any of these
    Sidekiq.redis { |redis| redis.call("SREM", "running", jid) }
  end
end

# Goes on in another process.
class InTurn < ActiveJob::Base
  include JobIteration::Iteration

  def build_enumerator(cursor:) = enumerator_builder.times(15, cursor:)

  def each_iteration(number)
    sleep(0.1)
    report("turn", number, ::Process.pid)
  end
end

# Puts jobs in the queue as a program does.
class Enqueue
  include Sidekiq::Job

  def perform
    report("enqueued", Array.new(3) { UntilExecuted.perform_in(1) }.compact.size)
    5.times { WhileExecuting.perform_async }
    InTurn.perform_later
  end
end

Sidekiq.configure_server do |config|
  config[:cron_poll_interval] = 1
  config.client_middleware { |chain| chain.add(SidekiqUniqueJobs::Middleware::Client) }
  config.server_middleware { |chain| chain.add(SidekiqUniqueJobs::Middleware::Server) }
  SidekiqUniqueJobs::Server.configure(config)
  config.on(:startup) { Sidekiq::Cron::Job.create(name: "each second", cron: "* * * * * *", class: "EachSecond") }
end
