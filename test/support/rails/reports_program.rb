# frozen_string_literal: true

# What Rails hears of tasks, as JSON: reports_program.rb VERSION BACKEND

require "json"
require "stringio"
require "tmpdir"

version, backend = ARGV
gem("railties", version)
gem("activerecord", version)
ENV["DATABASE_URL"] = "sqlite3:#{Dir.mktmpdir}/reports.sqlite3?pool=5"
LOG = StringIO.new
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "heddle/rails"

class Reports < Rails::Application
  config.eager_load = false
  config.hosts.clear
  config.secret_key_base = "x"
  config.logger = Logger.new(LOG, level: :info)
  config.active_support.isolation_level = :fiber
  routes.append { get "items", to: "items#index" }
end

class Item < ActiveRecord::Base
end

# One query of its own, three of tasks, two of a task of a task, of which the query cache answers one.
class ItemsController < ActionController::API
  def index
    Item.first
    Heddle.map(1..3) { |id| Item.where(id: id).to_a }
    Heddle.spawn { Heddle.spawn { Item.cache { 2.times { Item.where(id: 9).to_a } } }.value }.value
    render(json: [])
  end
end

Reports.initialize!
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define { create_table(:items, force: true) { |table| table.string :name } }
payload = nil
ActiveSupport::Notifications.subscribe("process_action.action_controller") { |*, found| payload = found }
Heddle.run(backend: backend) { Reports.call(Rack::MockRequest.env_for("/items")) }

errors = []
subscriber = Object.new
subscriber.define_singleton_method(:report) do |error, handled:, context:, source:, **|
  errors << [error.message, context[:task], source, handled]
end
Rails.error.subscribe(subscriber)
handled = []
Heddle.on_error { |error, _task| handled << error.message }
Heddle.run(backend: backend) { Heddle.spawn(isolated: true, name: "mail") { raise "no route" } }
Heddle.detach("audit") { raise "no audit" }
sleep(0.01) until handled.size == 2

puts JSON.generate(counts: payload.values_at(:queries_count, :cached_queries_count), db_runtime: payload[:db_runtime],
                   log: LOG.string, errors: errors, handled: handled)
exit!(0) if $stdout.flush
