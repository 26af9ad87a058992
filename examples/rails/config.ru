# frozen_string_literal: true

# A Rails application with one page: it asks ten slow services at once, and the browser shows each answer as soon as it
# is there. See dashboards_controller.rb and views/dashboards.
#
#   heddle serve -p 9292 examples/rails/config.ru     (or: cd examples/rails && rackup -s heddle)
#   open http://127.0.0.1:9292/
#
# The page takes as long as the slowest service, 1 second. One after another they would take 5.5 seconds.
# It needs the gems railties and actionpack 8, and heddle-server.

require "rails"
require "action_controller/railtie"
require "heddle/rails"

# As small as can be: it has no database and no sessions.
class Dashboard < Rails::Application
  config.root = __dir__
  config.load_defaults(8.0)
  config.eager_load = false
  config.hosts.clear
  config.logger = Logger.new($stderr, level: Logger::WARN)
  config.secret_key_base = "not needed, for there are no sessions" * 2
  config.active_support.isolation_level = :fiber
  routes.append { root to: "dashboards#show" }
end

require_relative "dashboards_controller"
Rails.application.initialize!
run Rails.application
