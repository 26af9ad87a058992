# frozen_string_literal: true

# bin/test: takes 8 s, 0.5 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/servers/mariadb"
require "support/servers/postgres"

# What a cancel does to the pool of Sequel, with the extension for fibers.
contract "SequelCancel" do
  extend TestSupport::Clients

  client "pg"
  client "trilogy", server: TestSupport::Servers::Mariadb
  client "sequel", server: TestSupport::Servers::Postgres

  heddle_only "they are not cancelled"

  def setup
    super
    Sequel.extension(:fiber_concurrency)
  end

  def teardown
    @database&.disconnect
    super
  end

  def database(adapter, port, max_connections: 3, **options)
    @database = Sequel.connect(adapter: adapter, host: "127.0.0.1", port: port, user: "heddle", max_connections:,
                               **options)
  end

  # 30 questions, of which some are cancelled; the others are answered right. Then all of them are answered
  # right. The tasks are isolated: the last test says why.
  def assert_right_after_cancels(database, pause)
    Heddle.run(backend: backend) do
      ask = ->(number) { database.fetch("SELECT #{number} AS number FROM #{pause}").first[:number] }
      tasks = Array.new(30) { |number| Heddle.spawn(isolated: true) { ask.call(number) } }
      tasks.each_slice(3) do |task, *|
        sleep(0.01)
        task.cancel.wait(20)
        task.error
      end
      kept = (0...30).reject { |number| (number % 3).zero? }

      assert_equal(kept, kept.map { |number| tasks[number].value })
      assert_equal([*0...30], Heddle.map(0...30, &ask))
    end
  end

  # preconnect: Sequel makes a DatabaseConnectionError of a cancel while it connects, which would end the run.
  def test_pg
    one = database("postgres", TestSupport::Servers::Postgres.start.port, database: "postgres", preconnect: true)

    assert_right_after_cancels(one, "pg_sleep(0.02)")
  end

  # The connection that trilogy has closed stays in the pool. The validator replaces it.
  def test_trilogy_with_a_validator
    one = database("trilogy", TestSupport::Servers::Mariadb.start.port, database: "heddle", preconnect: true)
    one.extension(:connection_validator)
    one.pool.connection_validation_timeout = -1

    assert_right_after_cancels(one, "(SELECT SLEEP(0.02)) AS pause")
  end

  # Without the adapter, the statement is of no use on this connection any more.
  def test_a_cancel_while_it_prepares
    postgres = TestSupport::Servers::Postgres.start
    one = database("postgres", postgres.port, database: "postgres", max_connections: 1)
    statement = one.from(Sequel.function(:generate_series, 1, 3).as(:number)).prepare(:select, :counted)
    reactor { one.get(1) }
    Heddle.run(backend: backend) do
      postgres.paused { Heddle.spawn(isolated: true) { statement.call }.tap { |task| task.wait(0.1) }.cancel.wait(20) }

      assert_raises(Sequel::DatabaseError) { statement.call } # (else the guide need not warn)
      one.disconnect

      assert_equal(3, statement.call.size)
    end
  end

  def test_a_cancel_while_it_connects_is_an_error_of_sequel
    port = mute_port
    database = database("postgres", port, database: "postgres", test: false)
    Heddle.run(backend: backend) do
      task = Heddle.spawn(isolated: true) { database.test_connection }
      task.wait(0.1)
      task.cancel.wait(20)

      assert_kind_of(Sequel::DatabaseConnectionError, task.error)
    end
  end
end
