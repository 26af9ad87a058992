# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/postgres"

# Transactions of pg in tasks, side by side on one thread.
contract "PgTransactions" do
  extend TestSupport::Clients

  client "connection_pool"
  client "pg", server: TestSupport::Servers::Postgres

  def setup
    super
    @clients = []
    @table = "account_#{backend}_#{name}".downcase
    connect.exec("CREATE TABLE #{@table} (owner INT PRIMARY KEY, coins INT)") if server
  end

  def teardown
    connect.exec("DROP TABLE IF EXISTS #{@table}") if server && @clients
    @clients&.each { |client| client.close unless client.finished? }
    super
  end

  def connect
    @clients << PG.connect(host: "127.0.0.1", port: server.port, user: "heddle", dbname: "postgres")
    # (A ROLLBACK after a cancel during the BEGIN or the COMMIT finds no transaction.)
    @clients.last.tap { |client| client.set_notice_processor { nil } }
  end

  def insert(client, owner, coins = 0) = client.exec("INSERT INTO #{@table} VALUES (#{owner}, #{coins})")
  def number(client, sql) = client.exec(sql).getvalue(0, 0).to_i
  def coins(client, owner) = number(client, "SELECT coins FROM #{@table} WHERE owner = #{owner}")
  def rows(client) = number(client, "SELECT count(*) FROM #{@table}")

  # None commits until all have looked.
  def test_each_sees_its_own_until_the_commit
    reactor do
      inserted = looked = 0
      seen, = all_at_once(20) do |number|
        connect.transaction do |client|
          insert(client, number)
          inserted += 1
          sleep(0.002) until inserted == 20
          count = rows(client)
          looked += 1
          sleep(0.002) until looked == 20
          count
        end
      end

      assert_equal([1], seen.uniq)
      assert_equal(20, rows(connect))
    end
  end

  # A row that one has locked: the others wait for it, and the thread does not.
  def test_those_that_change_one_row_take_turns
    reactor do
      insert(connect, 1, 0)
      clients = Array.new(20) { connect }
      assert_others_run(at_least: 1) do
        all_at_once(20) do |number|
          clients[number].transaction do |client|
            before = number(client, "SELECT coins FROM #{@table} WHERE owner = 1 FOR UPDATE")
            sleep(0.002)
            client.exec("UPDATE #{@table} SET coins = #{before + 1} WHERE owner = 1")
          end
        end
      end

      assert_equal(20, coins(connect, 1))
    end
  end

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
      locked = 0
      jobs = Array.new(2) do |number|
        go do
          two[number].transaction do |client|
            add_one(client, number)
            locked += 1
            sleep(0.002) until locked == 2
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
  # (Who is cancelled during the COMMIT does not learn whether the server has done it.)
  def test_a_pool_after_many_cancels
    assert_right_after_many_cancels { Heddle::Pool.new(size: 5, timeout: 20) { connect } }
  end

  # It keeps the connections of those that were cancelled.
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
