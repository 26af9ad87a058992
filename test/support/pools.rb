# frozen_string_literal: true

module TestSupport
  # Pools of which the tests know what they make and close.
  module Pools
    def setup
      super
      skip("plain threads: without Heddle") unless defined?(Heddle::Pool)
    end

    # @made is the number of connections, @closed the number of closed ones.
    def make_pool(size: 1, **options, &make)
      @made = 0
      @closed = []
      make ||= -> { "connection #{@made += 1}" }
      Heddle::Pool.new(size:, close: ->(connection) { @closed << connection }, **options, &make)
    end

    # In use, idle, waiting.
    def state(pool) = [pool.in_use, pool.idle, pool.waiting]
  end
end
