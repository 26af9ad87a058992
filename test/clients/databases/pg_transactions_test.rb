# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/pg_connections"
require "support/clients/transactions"

# Transactions of pg in tasks, side by side on one thread.
contract "PgTransactions" do
  extend TestSupport::Clients

  include TestSupport::PgConnections
  include TestSupport::Transactions

  client "connection_pool"
  client "pg", server: TestSupport::Servers::Postgres

  # A ROLLBACK after a cancel during the BEGIN or the COMMIT finds no transaction.
  def connect = super.tap { |client| client.set_notice_processor { nil } }

  def execute(client, sql) = client.exec(sql)
  def number(client, sql) = execute(client, sql).getvalue(0, 0).to_i
  def transaction(client, &) = client.transaction(&)

  def test_repeatable_reads_see_one_state
    reactor do
      insert(connect, 1, 5)
      reader = connect
      reader.exec("BEGIN ISOLATION LEVEL REPEATABLE READ")
      before = coins(reader, 1)
      go { connect.exec("UPDATE #{@table} SET coins = 9") }.value

      assert_equal([5, 5], [before, coins(reader, 1)])
      reader.exec("COMMIT")

      assert_equal(9, coins(reader, 1))
    end
  end

  # The server finds the deadlock, and ends one of the two.
  def test_a_deadlock_ends_one_of_two
    reactor do
      two = Array.new(2) { connect }
      two.each { |client| client.exec("SET deadlock_timeout = '50ms'") }
      2.times { |owner| insert(two.first, owner) }
      jobs = Array.new(2) do |number|
        go do
          two[number].transaction do |client|
            add_one(client, number)
            meet(:locked, 2)
            add_one(client, 1 - number)
          end
        end
      end

      assert_equal([NilClass, PG::TRDeadlockDetected], jobs.map { |job| job.failure.class }.sort_by(&:name))
      assert_equal([1, 1], [0, 1].map { |owner| coins(two.first, owner) })
    end
  end

  def add_one(client, owner) = client.exec("UPDATE #{@table} SET coins = coins + 1 WHERE owner = #{owner}")

  def test_an_error_rolls_back
    reactor do
      errors, = all_at_once(10) do |number|
        client = connect
        client.transaction do
          insert(client, number)
          client.exec("SELECT 1 / 0")
        end
      rescue PG::DivisionByZero => e
        [e.class, client.transaction_status]
      end

      assert_equal([[PG::DivisionByZero, PG::PQTRANS_IDLE]], errors.uniq)
      assert_equal(0, rows(connect))
    end
  end

  # The block of #transaction rolls back before the cancel goes on, and the client is ready for the next one.
  def test_a_cancel_rolls_back
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      clients = Array.new(10) { connect }
      tasks = clients.each_with_index.map do |client, number|
        Heddle.spawn do
          client.transaction do
            insert(client, number)
            client.exec("SELECT pg_sleep(20)")
          end
        end
      end
      sleep(0.1)
      tasks.each(&:cancel).each { |task| task.wait(20) }

      assert(tasks.all?(&:cancelled?))
      assert_equal([PG::PQTRANS_IDLE], clients.map(&:transaction_status).uniq)
      assert_equal([*0...10], clients.each_with_index.map { |client, n| number(client, "SELECT #{n}") })
      assert_equal(0, rows(clients.first))
    end
  end

  def test_a_timeout_rolls_back
    reactor do
      errors, = all_at_once(10) do |owner|
        client = connect
        Timeout.timeout(0.1) do
          client.transaction do
            insert(client, owner)
            client.exec("SELECT pg_sleep(20)")
          end
        end
      rescue Timeout::Error => e
        [e.class, number(client, "SELECT #{owner}") - owner]
      end

      assert_equal([[Timeout::Error, 0]], errors.uniq)
      assert_equal(0, rows(connect))
    end
  end

  # In a pool: who was cancelled gives the connection back. The next one gets its own answer, and no open transaction.
  # A task that is cancelled during the COMMIT does not learn whether the server has done it.
  def test_a_pool_after_many_cancels
    assert_right_after_many_cancels { Heddle::Pool.new(size: 5, timeout: 20) { connect } }
  end

  # It keeps the connections of the cancelled tasks.
  def test_a_connection_pool_after_many_cancels
    assert_right_after_many_cancels { ConnectionPool.new(size: 5, timeout: 20) { connect } }
  end

  def assert_right_after_many_cancels
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      pool = yield
      tasks = Array.new(60) { |number| Heddle.spawn { transaction_in(pool, number) } }
      tasks.each_with_index do |task, number|
        sleep(0.003)
        task.cancel if number.odd?
      end
      tasks.each { |task| task.wait(20) }
      kept = tasks.each_index.reject { |number| tasks[number].cancelled? }
      stored = connect.exec("SELECT owner FROM #{@table} ORDER BY owner").column_values(0).map(&:to_i)

      assert_equal(kept, kept.map { |number| tasks[number].value })
      assert_empty(kept - stored)
      assert_empty(tasks.each_index.select { |n| tasks[n].cancelled? } & before_the_commit(stored))
      assert_equal([*0...20], Heddle.map(0...20) { |n| pool.with { |client| number(client, "SELECT #{n}") } })
      assert_equal([PG::PQTRANS_IDLE], @clients.reject(&:finished?).map(&:transaction_status).uniq)
    end
  end

  # Those of them whose block had not ended.
  def before_the_commit(numbers) = numbers - @ready_to_commit

  def transaction_in(pool, owner)
    pool.with do |client|
      client.transaction do
        insert(client, owner)
        answer = number(client, "SELECT #{owner} FROM pg_sleep(0.01)")
        (@ready_to_commit ||= []) << owner
        answer
      end
    end
  end
end
