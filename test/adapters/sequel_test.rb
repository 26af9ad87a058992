# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/postgres"

# Sequel with its adapter: what a cancel and a timeout do while it connects, and while it prepares a statement.
contract "SequelAdapter" do
  extend TestSupport::Clients

  client "pg"
  client "sequel", server: TestSupport::Servers::Postgres

  heddle_only "it is about tasks"

  def setup
    super
    Sequel.extension(:fiber_concurrency)
    require "heddle/adapters/sequel"
  end

  def teardown
    @database&.disconnect
    super
  end

  def database(port = server.port, **)
    @database = Sequel.connect(adapter: "postgres", host: "127.0.0.1", port:, user: "heddle", database: "postgres",
                               max_connections: 1, **)
  end

  # @yield in a task that a cancel ends, and then in one that a timeout ends
  # @return [Array<Class>] the errors
  def interrupt(&work)
    Heddle.run(backend: backend) do
      cancelled = Heddle.spawn(isolated: true, &work)
      cancelled.wait(0.1)
      cancelled.cancel.wait(20)
      late = Heddle.spawn(isolated: true) { Timeout.timeout(0.1, &work) }.wait

      [cancelled, late].map { |task| task.error.class }
    end
  end

  def test_a_cancel_while_it_connects
    database = database(mute_port, test: false)

    assert_equal([Heddle::Cancelled, Timeout::Error], interrupt { database.get(1) })
    close_forgotten(Socket)
  ensure
    GC.start
  end

  # With preconnect it makes connections later, too.
  def test_a_cancel_while_it_connects_again
    database = database(preconnect: true)

    reactor { assert_equal(1, database.get(1)) }
    database.disconnect
    errors = server.paused { interrupt { database.get(1) } }

    assert_equal([Heddle::Cancelled, Timeout::Error], errors)
    reactor { assert_equal(1, database.get(1)) }
  ensure
    GC.start
  end

  def test_an_error_of_the_server_while_it_connects
    database = database(free_port, test: false)

    reactor { assert_raises(Sequel::DatabaseConnectionError) { database.get(1) } }
  end

  # The server prepares the statement, and the answer comes when nobody waits for it any more.
  def test_an_interrupt_while_it_prepares
    database = database()
    %i[heddle Heddle2].each do |name|
      statement = database.from(Sequel.function(:generate_series, 1, 3).as(:number)).prepare(:select, name)
      reactor { database.get(1) }

      assert_equal([Heddle::Cancelled, Timeout::Error], server.paused { interrupt { statement.call } })
      reactor { 3.times { assert_equal(3, statement.call.size) } }
    end
  end

  # It is free to be prepared otherwise.
  def test_a_statement_that_the_server_refuses
    database = database()
    2.times do
      reactor do
        assert_raises(Sequel::DatabaseError) { database.from(:no_such_table).prepare(:select, :refused).call }
        assert_equal(1, database.from(Sequel.lit("(SELECT 1 AS one) AS ones")).prepare(:first, :right).call[:one])
      end
    end
  end
end
