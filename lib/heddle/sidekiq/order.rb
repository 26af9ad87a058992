# frozen_string_literal: true

module Heddle
  module Sidekiq
    # One job that a processor has asked for. Three threads have to do with it: one gets it from Redis, one begins with
    # it, and one may end the process meanwhile. A lock decides which of them has it, so that it is neither lost nor put
    # back twice.
    #
    # @private
    class Order
      # @param processor [Heddle::Sidekiq::Processor]
      # @yield once, when Redis has answered and nobody waits for the job any more
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

      # In the thread that asks Redis.
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

      # In the task of the processor: waits for the job. Who ends the process finds it from then on at the processor.
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

      # Nobody will begin it any more.
      #
      # @return [Object, nil] the job, if it has come
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
