# frozen_string_literal: true

require_relative "processor_task"

module Heddle
  module Sidekiq
    # Takes the place of methods of Sidekiq::Processor: it runs in a task in place of a thread. All else is Sidekiq's
    # own: the manager that starts, quiets and stops the processors, the retries, the middleware, the heartbeat and the
    # poller of scheduled jobs, which have threads of their own.
    #
    # @private
    module Processor
      def start
        @thread ||= ProcessorTask.start(self) { run } if Sidekiq.tasks?(capsule)
        super
      end

      private

      # Only some ask Redis at the same time, the others wait in line: 500 idle ones would keep 500 connections. When
      # the processors are to stop, those in line do not ask any more. If one is interrupted while it asks, Redis would
      # still give a job to its connection, and nobody would read it: the connection is closed.
      def get_one # rubocop:disable Naming/AccessorMethodName -- it is Sidekiq's
        return super unless Sidekiq.tasks?(capsule)

        begin
          answered = false
          ProcessorTask.fetchers(capsule).acquire { super unless stopping? }.tap { answered = true }
        ensure
          capsule.redis_pool.reload(&:close) unless answered
        end
      end

      # What a job spawns belongs to it: the job has ended when they all have, and it fails with them.
      def execute_job(...)
        Sidekiq.tasks?(capsule) ? Heddle.run { super } : super
      end
    end
  end
end
