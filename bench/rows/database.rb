# frozen_string_literal: true

require_relative "../support/real_server"

module Bench
  # NeverBlock's database case: one query that takes the server 0.5 s, and then so many short ones, over and over. Ten
  # connections of pg work off a queue of them, each in a task or in a thread of its own; beside them one connection
  # that blocks. With a real PostgreSQL, which is started for it.
  module Database
    CONNECTIONS = 10
    SLOW = 0.5
    # How many slow queries there are: two for each connection.
    ROUNDS = 20

    NOTE = "1,000,000 divided by a wall time is the throughput, in queries per second. \"plain\" has one connection, " \
           "and no tasks."

    class << self
      def start(install:)
        server = RealServer.start("postgres", install:)
        versions = "#{server.version}, pg #{Gem::Specification.find_by_name("pg").version}, #{CONNECTIONS} connections"
        [{ "BENCH_POSTGRES_PORT" => server.port.to_s }, { "PostgreSQL" => versions }]
      rescue Gem::MissingSpecError => e
        abort(e.message)
      end

      # @return [Array<PG::Connection>] of this process, kept for the next turn
      def connections(count)
        require "pg"
        @connections ||= Array.new(count) do
          PG.connect(host: "127.0.0.1", port: ENV.fetch("BENCH_POSTGRES_PORT"), user: "heddle", dbname: "postgres")
        end
      end

      # @return [Thread::Queue] so many queries, each with the number that it is to return
      def queries(count, short)
        queue = Thread::Queue.new
        count.times do |number|
          slow = (number % (short + 1)).zero?
          queue << [slow ? "SELECT #{number} FROM pg_sleep(#{SLOW})" : "SELECT #{number}", number]
        end
        queue.close
      end

      # @return [Integer] how many answers were right
      def work_off(queue, connection)
        right = 0
        while (sql, number = queue.pop)
          right += 1 if connection.exec(sql).getvalue(0, 0).to_i == number
        end
        right
      end
    end

    Bench.group("database", "One query of #{SLOW} s for each n short ones, through #{CONNECTIONS} connections of pg",
                peers: %w[heddle threads plain], figures: %i[wall cpu], note: NOTE, setup: method(:start)) do
      [5, 10, 20, 50, 100].each do |short|
        Bench.row("database_#{short}", "n = #{short}",
                  unit: "query", operations: ROUNDS * (short + 1), multiple: short + 1, fixed: true, figure: :wall,
                  expect: ->(n) { n }) do |peer, n|
          own = connections(peer.is_a?(PlainAdapter) ? 1 : CONNECTIONS)
          queue = queries(n, short)
          right = []
          peer.run { own.each { |connection| peer.spawn { right << work_off(queue, connection) } } }
          right.sum
        end
      end
    end
  end
end
