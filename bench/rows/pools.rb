# frozen_string_literal: true

module Bench
  # What it costs to take a connection out of a pool and to give it back: Heddle::Pool and connection_pool, in tasks and
  # in threads without Heddle. The connection does nothing.
  module Pools
    SIZE = 5

    MAKE = {
      "connection_pool" => lambda {
        require "connection_pool"
        ConnectionPool.new(size: SIZE, timeout: 30) { Object.new }
      },
      "heddle" => lambda {
        $LOAD_PATH.unshift(File.expand_path("../lib", ROOT)) unless defined?(Heddle)
        require "heddle"
        Heddle::Pool.new(size: SIZE, timeout: 30) { Object.new }
      }
    }.freeze

    TITLES = { "connection_pool" => "connection_pool", "heddle" => "Heddle::Pool" }.freeze

    # Each user takes a connection so often, and may let the others run while it has it.
    # @return [Array<Integer>] how often one was used, and the most that were at the same time
    def self.use(pool, peer, users, times)
      counts = Array.new(users, 0)
      held = most = 0
      users.times do |user|
        peer.spawn do
          times.times do
            pool.with do
              most = held if (held += 1) > most
              yield(pool)
              held -= 1
            end
            counts[user] += 1
          end
        end
      end
      -> { [counts.sum, most <= SIZE] }
    end

    # Two rows, one for each pool, measured by turns.
    def self.rows(name, title, users:, operations:, &hold)
      MAKE.each do |kind, make|
        pool = nil
        Bench.row("pool_#{name}_#{kind}", "#{title}, #{TITLES.fetch(kind)}",
                  unit: "use", operations:, multiple: users, batch: "pool_#{name}",
                  base: "pool_#{name}_connection_pool", expect: ->(n) { [n, true] }) do |peer, n|
          pool ||= make.call
          result = nil
          peer.run { result = use(pool, peer, users, n / users, &hold) }
          result.call
        end
      end
    end

    Bench.group("pools", "Taking a connection out of a pool and giving it back",
                peers: %w[heddle threads], turns: 20, share: true, shuffle: true, figures: %i[cpu wall],
                own: "connection_pool") do
      rows("alone", "one user", users: 1, operations: 200_000) { nil }
      rows("room", "5 users of 5", users: 5, operations: 100_000) { sleep(0) }
      rows("line", "50 users of 5", users: 50, operations: 100_000) { sleep(0) }
      rows("nested", "one user, nested", users: 1, operations: 100_000) { |pool| pool.with { nil } }
    end
  end
end
