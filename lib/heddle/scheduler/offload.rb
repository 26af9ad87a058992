# frozen_string_literal: true

module Heddle
  # See scheduler.rb; here: Heddle.offload.
  class Scheduler
    # What has come of a block of the program on a worker thread.
    class Offload
      attr_reader :value, :error

      # @return [Offload]
      def self.outcome(storage, block)
        Fiber.new(blocking: true, storage:) { new(block) }.resume
      end

      def initialize(block)
        @value = block.call
      rescue BlockingJob::Stop
        raise # it is no longer wanted
      rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised in the task
        @error = e
      end
    end
    private_constant :Offload
  end
end
