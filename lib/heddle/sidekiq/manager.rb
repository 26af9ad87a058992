# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Takes the place of methods of Sidekiq::Manager. While it goes through its processors to start or to stop them, the
    # first of them run jobs. One whose job fails puts another processor in its own place, which Ruby refuses to add to
    # a Set that somebody goes through: the place would be lost. With the manager's lock this waits for the end.
    #
    # @private
    module Manager
      # Seconds for which Redis may still hand over a job, and some to put it back.
      SETTLE = ::Sidekiq::BasicFetch::TIMEOUT + 1
      private_constant :SETTLE

      def start = @plock.synchronize { super }

      def quiet = @plock.synchronize { super }

      def stop(deadline)
        super
      ensure
        Fetches.of(capsule).settle(SETTLE) if Sidekiq.tasks?(capsule)
      end

      private

      def hard_shutdown
        Thread.current[:sidekiq_redis_pool] = SparePool.new(capsule)
        super
      ensure
        Thread.current[:sidekiq_redis_pool] = nil
      end
    end
  end
end
