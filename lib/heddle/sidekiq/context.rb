# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Copies the values that Sidekiq keeps by Thread.current[...], and so by task. A task that a job spawns gets a copy:
    # it uses the same pool of connections to Redis, and its lines in the log name the job.
    #
    # @private
    module Context
      TID = "sidekiq_tid"
      KEYS = [:sidekiq_capsule, :sidekiq_redis_pool, TID].freeze
      LOG = :sidekiq_context
      private_constant :KEYS, :LOG, :TID

      class << self
        # @return [void]
        def start = @start ||= Heddle.on_spawn { around_task if Thread.current[:sidekiq_capsule] }

        # Gives each task its own identifier. Sidekiq derives it from the thread, which all processors share, and lists
        # busy processors by it.
        # @return [void]
        def name_task = Thread.current[TID] = (Fiber.current.object_id ^ ::Process.pid).to_s(36)

        private

        def around_task
          values = KEYS.to_h { |key| [key, Thread.current[key]] }
          values[LOG] = Thread.current[LOG].dup
          lambda do |work|
            values.each { |key, value| Thread.current[key] = value }
            work.call
          end
        end
      end
    end
  end
end
