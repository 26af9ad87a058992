# frozen_string_literal: true

module Heddle
  module Sidekiq
    # Connections with which jobs are put back. While a job computes, the tasks that it stops may have all of the
    # capsule's connections: then a new one is made.
    #
    # @private
    class SparePool
      # @param capsule [Sidekiq::Capsule]
      def initialize(capsule)
        @capsule = capsule
      end

      # @yieldparam connection [Object]
      def with(&)
        has_one = false
        @capsule.local_redis_pool.with do |connection|
          has_one = true
          yield(connection)
        end
      rescue ConnectionPool::TimeoutError
        raise if has_one

        with_new(&)
      end

      private

      def with_new(&)
        pool = @capsule.config.new_redis_pool(1, "heddle")
        pool.with(&)
      ensure
        pool&.shutdown(&:close)
      end
    end
    private_constant :SparePool
  end
end
