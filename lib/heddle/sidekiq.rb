# frozen_string_literal: true

# For Sidekiq: it runs its jobs as tasks. It is not loaded by `require "heddle"`, which needs no gem.
require_relative "adapters"

module Heddle
  Adapters.load_library("sidekiq", ">= 8.0", "< 9", feature: "heddle/sidekiq")
  require "sidekiq/manager"
  require_relative "sidekiq/settings"
  require_relative "sidekiq/context"
  require_relative "sidekiq/manager"
  require_relative "sidekiq/processor"

  Sidekiq::Context.start
  Adapters.prepend_to("sidekiq", ::Sidekiq::Manager, Sidekiq::Manager, feature: "heddle/sidekiq")
  Adapters.prepend_to("sidekiq", ::Sidekiq::Processor, Sidekiq::Processor, feature: "heddle/sidekiq")
end
