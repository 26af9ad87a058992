# frozen_string_literal: true

# A small Rails application for bench/web_servers.rb: a page from a template, without a query and with one.
# rubocop:disable Style/OneClassPerFile -- it is one file
ENV["RAILS_ENV"] = "production"
ENV["DATABASE_URL"] = "sqlite3:#{ENV.fetch("BENCH_FOLDER")}/#{Process.pid}.sqlite3?pool=64"

require "logger"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"

# The application.
class Shop < Rails::Application
  config.root = __dir__
  config.load_defaults(Rails::VERSION::STRING.to_f)
  config.eager_load = true
  config.enable_reloading = false
  config.logger = Logger.new(nil)
  config.secret_key_base = "0" * 64
  config.active_support.isolation_level = :fiber
  routes.append do
    get "page", to: "pages#page"
    get "query", to: "pages#query"
    get "slow", to: "pages#slow"
  end
end

Shop.initialize!
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define { create_table(:products) { |table| table.string(:name) } }

# What the pages list.
class Product < ActiveRecord::Base; end
NAMES = Array.new(20) { |number| "product #{number}" }.freeze
Product.insert_all(NAMES.map { |name| { name: } })

# The pages.
class PagesController < ActionController::Base
  prepend_view_path(File.expand_path("views", __dir__))

  def page = render(:page, locals: { names: NAMES })

  # Renders for about 200 ms.
  def slow = render(:page, locals: { names: NAMES * 200 })

  def query = render(:page, locals: { names: Product.order(:id).pluck(:name) })
end

run(Shop)
# rubocop:enable Style/OneClassPerFile
