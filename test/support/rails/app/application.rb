# frozen_string_literal: true

# A Rails application as small as can be; test/rails/application_test.rb runs it under Puma. The environment says:
# APP_DATABASE (JSON), APP_ISOLATION, APP_RELOADING, APP_INHERIT, APP_HTTP (the port of a server that answers late).

require "json"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "net/http"
require "heddle/rails"

class Application < Rails::Application
  config.root = __dir__
  config.load_defaults(8.0)
  config.logger = Logger.new($stdout, level: Logger::WARN)
  config.secret_key_base = "a" * 32
  config.enable_reloading = ENV.key?("APP_RELOADING")
  config.eager_load = !config.enable_reloading
  config.consider_all_requests_local = true
  config.action_dispatch.show_exceptions = :none
  config.i18n.available_locales = %i[en de]
  config.active_support.isolation_level = ENV.fetch("APP_ISOLATION").to_sym
  config.heddle.inherit_current = ENV.fetch("APP_INHERIT", "true") == "true"

  routes.append do
    get "page", to: "pages#show"
    get "state", to: "pages#state"
  end
end

ENV["DATABASE_URL"] = ENV.fetch("APP_DATABASE")
Rails.application.initialize!
