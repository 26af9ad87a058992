# frozen_string_literal: true

module Bench
  # NeverBlock's database case: one query that takes the server 0.5 s, and then a number of short ones, over and over,
  # through ten connections of pg. Either each connection has a task (or a thread), which works off a queue of them. Or
  # each query has one, which waits for a free connection. Beside them one connection that blocks. With a real
  # PostgreSQL, which is started for it.
  module Database
    CONNECTIONS = 10
    SLOW = 0.5
    # How many slow queries there are: two for each connection.
    ROUNDS = 20

    NOTE = "1,000,000 divided by a wall time is the throughput, in queries per second. \"plain\" has one connection, " \
           "and no tasks."

    class << self
      # @return [Array<PG::Connection>] of this process, kept for the next turn
      def connections(count)
        require "pg"
        @connections ||= Array.new(count) do
          PG.connect(host: "127.0.0.1", port: ENV.fetch("BENCH_POSTGRES_PORT"), user: "heddle", dbname: "postgres")
        end
      end

      # @return [Thread::Queue] this number of queries, each with the number that it should return
      def queries(count, short)
        queue = Thread::Queue.new
        count.times do |number|
          slow = (number % (short + 1)).zero?
          queue << [slow ? "SELECT #{number} FROM pg_sleep(#{SLOW})" : "SELECT #{number}", number]
        end
        queue.close
      end

      # A task for each connection.
      # @return [Integer] how many answers were right
      def work_off(peer, connections, queue)
        right = 0
        peer.run do
          connections.each do |connection|
            peer.spawn do
              while (query = queue.pop)
                right += 1 if right?(connection, *query)
              end
            end
          end
        end
        right
      end

      # A task for each query.
      # @return [Integer] how many answers were right
      def ask_each(peer, connections, queue)
        right = 0
        free = Thread::Queue.new(connections)
        peer.run do
          queue.size.times do
            query = queue.pop
            peer.spawn { right += 1 if ask(free, *query) }
          end
        end
        right
      end

      # @return [Boolean] whether the answer was right
      def ask(free, sql, number)
        connection = free.pop
        right?(connection, sql, number)
      ensure
        free << connection
      end

      # @return [Boolean] whether the answer was right
      def right?(connection, sql, number)
        @most = [@most, @running += 1].max
        connection.exec(sql).getvalue(0, 0).to_i == number
      ensure
        @running -= 1
      end

      # The value of the block, which runs queries at once if it has several connections.
      def work_with(connections)
        @most = @running = 0
        yield(connections).tap { raise("#{@most} at once") if (@most > 1) != (connections.size > 1) }
      end

      # A row for each number of short queries.
      def rows(name, title, numbers)
        numbers.each do |short|
          Bench.row("database_#{name}_#{short}", format(title, short),
                    unit: "query", operations: ROUNDS * (short + 1), multiple: short + 1, fixed: true, figure: :wall,
                    expect: ->(n) { n }) do |peer, n|
            count = peer.is_a?(PlainAdapter) ? 1 : CONNECTIONS
            work_with(connections(count)) { |connections| yield(peer, connections, queries(n, short)) }
          end
        end
      end
    end

    Bench.group("database", "One query of #{SLOW} s for each n short ones, through #{CONNECTIONS} connections of pg",
                peers: %w[heddle threads plain], figures: %i[wall cpu], note: NOTE, needs: %i[postgres]) do
      rows("workers", "n = %d, a task for each connection", [5, 10, 20, 50, 100]) { |*given| work_off(*given) }
      rows("each", "n = %d, a task for each query", [5, 20, 100]) { |*given| ask_each(*given) }
    end
  end
end
