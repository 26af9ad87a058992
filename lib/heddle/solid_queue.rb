# frozen_string_literal: true

# For Solid Queue: its fiber workers run their jobs as tasks. It is not loaded by `require "heddle"`, which needs no
# gem.
require_relative "adapters"

module Heddle
  Adapters.load_library("solid_queue", ">= 1.7", "< 2", feature: "heddle/solid_queue")
end

require_relative "rails"
require_relative "solid_queue/pool"
require_relative "solid_queue/job_scope"

ActiveSupport.on_load(:active_job) { around_perform(Heddle.const_get(:SolidQueue)::JobScope) }
