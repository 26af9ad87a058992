# frozen_string_literal: true

require "puma/plugin"
require "heddle/rack"

# `plugin :heddle` in config/puma.rb: each request gets a Heddle.run, as by Heddle::Rack::Middleware.
Puma::Plugin.create do
  # @param launcher [Puma::Launcher] that has not asked for the application yet
  def start(launcher)
    launcher.config.singleton_class.prepend(Module.new { def app = Heddle::Rack::Middleware.new(super) })
  end
end
