# frozen_string_literal: true

module Heddle
  module Sidekiq
    # A job that a processor has requested. Three threads use it: one gets the job from Redis, one begins it, and one
    # may end the process meanwhile. A lock decides which of them owns the job, so that it is neither lost nor put back
    # twice.
    #
    # @private
    class Order
      # @param processor [Heddle::Sidekiq::Processor]
      # @yield once, when Redis has answered and nobody waits for the job
      def initialize(processor, &settled)
        @processor = processor
        @settled = settled
        @lock = Mutex.new
        @come = Thread::Queue.new
        @open = true # it can still be taken
        @unit = nil
      end

      # @return [Boolean]
      def wanted? = @open && !@processor.stopping?

      # Called in the thread that asks Redis.
      #
      # @param unit [Object, nil] the job
      # @return [Boolean] false if nobody would begin it
      def answer(unit = nil)
        @lock.synchronize do
          next false if @come.closed?

          @unit = unit if wanted?
          @come.close
          settle
          unit.nil? || !@unit.nil?
        end
      end

      # Waits for the job, in the task of the processor. From then on the thread that ends the process finds the job at
      # the processor.
      #
      # @return [Object, nil] the job
      def take
        @come.pop
        @lock.synchronize do
          next unless wanted?

          @processor.heddle_begin(@unit)
          close
        end
      end

      # Closes the order: nobody will begin its job.
      #
      # @return [Object, nil] the job, if it has arrived
      def withdraw = @lock.synchronize { close }

      private

      def close
        unit = @unit
        @unit = nil
        @open = false
        settle
        unit
      end

      def settle
        return if @open || !@come.closed?

        @settled&.call
        @settled = nil
      end
    end
    private_constant :Order
  end
end
