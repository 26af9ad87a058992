# frozen_string_literal: true

# For Solid Queue, whose fiber workers run their jobs as tasks with this file. It is not loaded by `require "heddle"`,
# which needs no gem.
require_relative "adapters"

module Heddle
  Adapters.load_library("solid_queue", ">= 1.7", "< 2", feature: "heddle/solid_queue")
end

require_relative "rails"
require_relative "solid_queue/pool"

# Tasks that a job spawns belong to it: the job has ended when they all have, and it fails with them.
ActiveSupport.on_load(:active_job) do
  around_perform { |_job, work| Heddle::Scheduler.current ? Heddle.run { work.call } : work.call }
end
