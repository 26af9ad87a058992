# frozen_string_literal: true

require "puma/plugin"
require "heddle/middleware"

# `plugin :heddle` in the configuration of Puma: Heddle::Middleware around the application, outside of all others.
Puma::Plugin.create do
  # @param launcher [Puma::Launcher] which has not loaded the application yet
  def start(launcher)
    launcher.config.define_singleton_method(:app) { Heddle::Middleware.new(super()) }
  end
end
