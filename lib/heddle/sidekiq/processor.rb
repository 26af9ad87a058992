# frozen_string_literal: true

require_relative "fetches"
require_relative "processor_task"

module Heddle
  module Sidekiq
    # Takes the place of methods of Sidekiq::Processor: it runs in a task in place of a thread. All else is Sidekiq's
    # own: the manager that starts, quiets and stops the processors, the retries, the middleware, the heartbeat and the
    # poller of scheduled jobs, which have threads of their own.
    #
    # @private
    module Processor
      # @return [Order] what it has asked for
      attr_writer :heddle_order

      def start
        @thread ||= ProcessorTask.new(self) { run } if Sidekiq.tasks?(capsule)
        super
      end

      # A job that it has not begun goes back at once, whatever holds up the task.
      def terminate(*)
        @done = true
        heddle_withdraw
        super
      end

      def kill(*)
        @done = @heddle_killed = true
        heddle_withdraw
        super
      end

      # @param unit [Object, nil] the job that it begins
      def heddle_begin(unit) = @job = unit

      private

      def heddle_withdraw
        unit = @heddle_order&.withdraw
        Fetches.of(capsule).give_back(unit) if unit
      end

      def fetch
        Sidekiq.tasks?(capsule) ? Fetches.of(capsule).ask(self) { get_one } : super
      end

      # What a job spawns belongs to it: the job has ended when they all have, and it fails with them. One that was
      # killed is in its queue again. If it has rescued the Shutdown, its end counts for nothing: neither is it retried,
      # nor pushed once more.
      def execute_job(...)
        return super unless Sidekiq.tasks?(capsule)

        begin
          Heddle.run { super }
        ensure
          raise ::Sidekiq::Shutdown if @heddle_killed
        end
      end
    end
  end
end
