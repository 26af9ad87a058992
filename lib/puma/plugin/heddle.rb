# frozen_string_literal: true

require "puma/plugin"
require "heddle/rack"

# `plugin :heddle` in config/puma.rb gives each request a Heddle.run, like Heddle::Rack::Middleware.
Puma::Plugin.create do
  # @param launcher [Puma::Launcher] has not asked for the application yet
  def start(launcher)
    launcher.config.singleton_class.prepend(Module.new { def app = Heddle::Rack::Middleware.new(super) })
  end
end
