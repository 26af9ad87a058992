# frozen_string_literal: true

require_relative "order"
require_relative "spare_pool"

module Heddle
  module Sidekiq
    # Asks Redis for the jobs of a capsule's processors, in a thread of its own. Data that Redis sends to a connection
    # is read there at once, also while a job computes and stops all others. So each job that was handed over either
    # begins, or goes back into its queue.
    #
    # Only some processors ask Redis at the same time, and the others wait in line: 500 idle ones would keep 500
    # connections. A processor keeps its place until its job begins, so that at most this number of jobs waits for one
    # that computes.
    #
    # @private
    class Fetches
      # A fetch takes less than a millisecond when jobs exist: this number is enough for thousands of jobs a second.
      LIMIT = 10
      # Seconds until the next attempt, when Redis does not take a job back.
      PAUSE = 0.5
      # How often this is tried in the task that has the job, if it has no thread of its own.
      ATTEMPTS = 20
      private_constant :LIMIT, :PAUSE, :ATTEMPTS

      @all = ObjectSpace::WeakKeyMap.new
      @lock = Mutex.new

      # @param capsule [Sidekiq::Capsule]
      # @return [Fetches]
      def self.of(capsule) = @all[capsule] || @lock.synchronize { @all[capsule] ||= new(capsule) }

      # @param capsule [Sidekiq::Capsule]
      def initialize(capsule)
        @capsule = capsule
        @limiter = Limiter.new(LIMIT)
        @lock = Mutex.new
        @changed = ConditionVariable.new
        @open = 0 # tasks that ask Redis, or give a job back
      end

      # Called in the task of a processor.
      #
      # @param processor [Heddle::Sidekiq::Processor]
      # @yield asks Redis
      # @yieldreturn [Object, nil] a job
      # @return [Object, nil] the job
      def ask(processor, &)
        @limiter.acquire
        order = processor.heddle_order = Order.new(processor) { @limiter.release }
        post(order.method(:answer)) { serve(order, &) }
        order.take
      ensure
        give_back(order.withdraw) if order
      end

      # Puts a job back that has not begun.
      #
      # @param unit [Object, nil] as Sidekiq's fetch has made it
      # @return [void]
      def give_back(unit)
        return unless unit

        post(-> { requeue(unit, attempts: ATTEMPTS) }) { requeue(unit) }
      rescue ThreadError # Ruby cannot start the thread: it has gone back from here
        nil
      end

      # Waits until Redis hands over no further job, and has taken back all jobs that nobody begins.
      #
      # @param seconds [Numeric]
      # @return [void]
      def settle(seconds)
        ends = Clock.now + seconds
        @lock.synchronize do
          while @open.positive? && (left = ends - Clock.now).positive?
            @changed.wait(@lock, left)
          end
        end
      end

      private

      # Redis may be away, or may not write: the job must not be lost for that.
      def requeue(unit, attempts: nil)
        former = Thread.current[:sidekiq_redis_pool]
        Thread.current[:sidekiq_redis_pool] = SparePool.new(@capsule)
        Heddle.retry(attempts:, wait: PAUSE) { unit.requeue }
      ensure
        Thread.current[:sidekiq_redis_pool] = former
      end

      def serve(order)
        Thread.current[:sidekiq_capsule] = @capsule
        unit = yield if order.wanted?
      ensure
        give_back(unit) unless order.answer(unit)
      end

      def post(refused = nil)
        begun
        dropped = lambda do
          refused&.call
        ensure
          ended
        end
        begin
          FETCHES.post(@capsule, "#{@capsule.name}/fetch", refused: dropped) do
            yield
          ensure
            ended
          end
        rescue StandardError # Ruby cannot start the thread
          dropped.call
          raise
        end
      end

      def begun
        FETCHES.enter
        @lock.synchronize { @open += 1 }
      end

      def ended
        @lock.synchronize { (@open -= 1).zero? && @changed.broadcast }
        FETCHES.leave
      end
    end
    private_constant :Fetches
  end
end
