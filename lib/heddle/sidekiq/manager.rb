# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Takes the place of methods of Sidekiq::Manager. While it iterates over its processors to start or to stop them,
    # the first of them run jobs. A processor whose job fails puts another one in its own place, which Ruby refuses to
    # add to a Set during an iteration: the place would be lost. With the manager's lock it waits for the end of the
    # iteration.
    #
    # @private
    module Manager
      # The seconds in which Redis may still hand over a job, and some to put it back.
      SETTLE = ::Sidekiq::BasicFetch::TIMEOUT + 1
      private_constant :SETTLE

      # Makes the pool of connections first: Sidekiq makes another one for each task that needs it before it exists.
      def start
        capsule.local_redis_pool
        @plock.synchronize { super }
      end

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
