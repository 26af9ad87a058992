# frozen_string_literal: true

require_relative "fetches"
require_relative "processor_task"

module Heddle
  module Sidekiq
    # Takes the place of methods of Sidekiq::Processor: it runs in a task in place of a thread. Everything else is
    # Sidekiq's own: the manager that starts, quiets and stops the processors, the retries, the middleware, the
    # heartbeat and the poller of scheduled jobs, which have threads of their own.
    #
    # @private
    module Processor
      # @return [Order] the order of its next job
      attr_writer :heddle_order

      def start
        @thread ||= ProcessorTask.new(self) { run } if Sidekiq.tasks?(capsule)
        super
      end

      # Stops the processor. A job that it has not begun goes back at once, even if another job stops the task.
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

      # Runs a job with the tasks that it spawns, which belong to it: the job has ended when they all have, and it fails
      # with them. A job that was killed is in its queue again. If it has rescued the Shutdown, its end is ignored: it
      # is neither retried nor pushed once more.
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
