# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/transactions"
require "support/servers/mariadb"

# Transactions of trilogy in tasks, side by side on one thread, and rows that mysql2 streams. With a MariaDB.
contract "MysqlTransactions" do
  extend TestSupport::Clients

  include TestSupport::Transactions

  client "mysql2"
  client "trilogy", server: TestSupport::Servers::Mariadb

  def connect(**options)
    keep(Trilogy.new(host: "127.0.0.1", port: server.port, username: "heddle", database: "heddle", **options))
  end

  def transaction(client)
    client.query("BEGIN")
    value = yield(client)
    client.query("COMMIT")
    value
  rescue StandardError
    client.query("ROLLBACK") unless client.closed?
    raise
  end

  def execute(client, sql) = client.query(sql)
  def number(client, sql) = execute(client, sql).first&.first
  # It waits for the transactions that still have locks.
  def rows_at_last(client) = number(client, "SELECT COUNT(*) FROM #{@table} LOCK IN SHARE MODE")

  # trilogy closes the connection: the server rolls back, when it has ended the query.
  def test_a_cancel_rolls_back
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      tasks = Array.new(10) { connect }.each_with_index.map do |one, number|
        Heddle.spawn do
          transaction(one) do |client|
            insert(client, number)
            client.query("SELECT SLEEP(2)")
          end
        end
      end
      wait_until("their queries") { number(connect, asleep) == 10 }
      tasks.each(&:cancel).each { |task| task.wait(20) }

      assert(tasks.all?(&:cancelled?))
      assert_equal(0, rows_at_last(connect))
    end
  end

  def asleep = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"

  def test_a_timeout_rolls_back
    reactor do
      errors, = all_at_once(10) do |number|
        client = connect
        Timeout.timeout(0.3) do
          transaction(client) do
            insert(client, number)
            client.query("SELECT SLEEP(2)")
          end
        end
      rescue Timeout::Error
        assert_raises(Trilogy::Error) { client.query("SELECT 1") }.class
      end

      assert_equal([Trilogy::EOFError], errors.uniq)
      assert_equal(0, rows_at_last(connect))
    end
  end

  # A pool that does not know of cancels: the client raises, and never gives the answer of another one.
  def test_a_pool_after_many_cancels
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      pool = Heddle::Pool.new(size: 5, timeout: 20) { connect }
      tasks = Array.new(60) do |number|
        Heddle.spawn { pool.with { |client| number(client, "SELECT #{number} FROM (SELECT SLEEP(0.01)) AS pause") } }
      end
      tasks.each_with_index do |task, number|
        sleep(0.002)
        task.cancel if number.odd?
      end
      tasks.each { |task| task.wait(20) }
      kept = tasks.each_index.reject { |number| tasks[number].cancelled? }

      assert_equal(kept, kept.map { |number| tasks[number].value })
      assert_equal([*0...20], Heddle.map(0...20) { |n| pool.with { |client| number(client, "SELECT #{n}") } })
    end
  end

  # Rows one by one: each task has its own, in their order.
  def test_rows_that_mysql2_streams
    reactor do
      values, = all_at_once(10) do |number|
        client = keep(Mysql2::Client.new(host: "127.0.0.1", port: server.port, username: "heddle", database: "heddle"))
        sum = 0
        client.query("SELECT #{number} * seq AS n FROM seq_1_to_2000", stream: true, cache_rows: false).each do |row|
          sum += row["n"]
          sleep(0) if (row["n"] % 100).zero?
        end
        sum
      end

      assert_equal(Array.new(10) { |number| number * 2_001_000 }, values)
    end
  end

  # A task that is cancelled in the midst of its rows leaves a client that says so.
  def test_a_cancel_between_the_rows_of_mysql2
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = keep(Mysql2::Client.new(host: "127.0.0.1", port: server.port, username: "heddle", database: "heddle"))
      reading = Heddle.spawn do
        client.query("SELECT seq FROM seq_1_to_50000", stream: true, cache_rows: false).each { sleep(0.001) }
      end
      reading.wait(0.05)
      reading.cancel.wait(20)
      outcome = begin
        client.query("SELECT 'its own' AS text").first
      rescue Mysql2::Error => e
        e.class
      end

      assert_includes([Mysql2::Error, { "text" => "its own" }], outcome)
    end
  end
end
