# frozen_string_literal: true

# For Sidekiq, which runs its jobs as tasks with this file. It is not loaded by `require "heddle"`, which needs no gem.
require_relative "adapters"

module Heddle
  Adapters.load_library("sidekiq", ">= 8.0", "< 9", feature: "heddle/sidekiq")
  require "sidekiq/launcher"
  require_relative "sidekiq/settings"
  require_relative "sidekiq/context"
  require_relative "sidekiq/manager"
  require_relative "sidekiq/processor"
  require_relative "sidekiq/ending"

  Sidekiq::Context.start
  { ::Sidekiq::Manager => Sidekiq::Manager, ::Sidekiq::Processor => Sidekiq::Processor,
    ::Sidekiq::Config => Sidekiq::Ending::Config, ::Sidekiq::Launcher => Sidekiq::Ending::Launcher,
    ::Sidekiq::Scheduled::Poller => Sidekiq::Ending::Poller }.each do |owner, methods|
    Adapters.prepend_to("sidekiq", owner, methods, feature: "heddle/sidekiq")
  end
  if defined?(::Sidekiq::CLI)
    Adapters.prepend_to("sidekiq", ::Sidekiq::CLI, Sidekiq::Ending::CLI, feature: "heddle/sidekiq")
  end
end
