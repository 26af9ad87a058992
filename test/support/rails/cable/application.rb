# frozen_string_literal: true

# A Rails application with a channel and a job, for test/rails/cable_test.rb. APP_CABLE is the configuration of
# ActionCable, APP_TMP a folder for what Rails writes.

require "json"
require "rails"
require "action_controller/railtie"
require "active_job/railtie"
require "action_cable/engine"
require "heddle/rails"

class CableApplication < Rails::Application
  config.root = __dir__
  config.load_defaults(8.0)
  config.eager_load = false
  config.hosts.clear
  config.logger = Logger.new($stdout, level: Logger::WARN)
  config.secret_key_base = "a" * 32
  config.consider_all_requests_local = true
  config.active_support.isolation_level = :fiber
  config.active_job.queue_adapter = :async
  config.action_cable.cable = JSON.parse(ENV.fetch("APP_CABLE"))
  config.action_cable.disable_request_forgery_protection = true
  config.middleware.use Heddle::Rack::Middleware
  routes.append { post "say", to: "words#say" }
end

module ApplicationCable
  class Connection < ActionCable::Connection::Base
    identified_by :name

    def connect = self.name = request.params.fetch(:name) { reject_unauthorized_connection }
  end

  class Channel < ActionCable::Channel::Base; end
end

class RoomChannel < ApplicationCable::Channel
  def subscribed = stream_from("room")

  # In a thread of ActionCable.
  def say(data)
    words = Heddle.map(data["words"]) { |word| sleep(0.01) && word.upcase }
    ActionCable.server.broadcast("room", "#{name}: #{words.join(" ")}")
  end
end

class SayJob < ActiveJob::Base
  # In a thread of ActiveJob.
  def perform(words)
    ActionCable.server.broadcast("room", Heddle.map(words) { |word| sleep(0.01) && word }.join(" "))
  end
end

class WordsController < ActionController::API
  def say
    words = %w[said by a job].map { |word| Heddle.spawn { sleep(0.01) && word } }
    SayJob.perform_later(words.map(&:value))
    head(:ok)
  end
end
