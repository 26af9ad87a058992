# frozen_string_literal: true

# A process of Sidekiq: as its own command starts it.

require "sidekiq"
require "sidekiq/cli"
require_relative "work"
require "active_support/isolated_execution_state"

ActiveSupport::IsolatedExecutionState.isolation_level = :fiber if Work::TASKS
if Work::TASKS
  require "heddle/rails"
  require "heddle/sidekiq"
end
ActiveRecord::Base.establish_connection(ENV.fetch("DATABASE_URL"))

class BenchJob
  include Sidekiq::Job

  def perform(number, enqueued) = Work.perform(number, enqueued)
end

Sidekiq.configure_server do |config|
  config.logger.level = Logger::WARN
  config.on(:heartbeat) { Work.ready }
end

cli = Sidekiq::CLI.instance
cli.parse(["-r", __FILE__, "-c", Work::CONCURRENCY.to_s, "-e", "production"])
cli.run(boot_app: false)
