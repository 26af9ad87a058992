# frozen_string_literal: true

# bin/test: takes 15 s, 0.3 of a core

require_relative "../test_helper"
require "support/clients/mysql2_matrix"
require "support/servers/mariadb"

# mysql2 with its adapter, and a MariaDB. test/clients/databases/mysql2_test.rb shows what holds up the others without
# the adapter.
contract "Mysql2Adapter" do
  extend TestSupport::Clients

  include TestSupport::Mysql2Matrix

  client "mysql2", server: TestSupport::Servers::Mariadb

  heddle_only "it is about tasks"

  def setup
    super
    require "heddle/adapters/mysql2"
  end

  def title = "mysql2, with its adapter"

  # A row that fills the buffer of the server, which sends it at once for that reason, and then a row that comes later
  # by this time.
  def late_row(seconds = 0.3) = "SELECT REPEAT('x', 100000) AS text, IF(seq = 2, SLEEP(#{seconds}), 0) FROM seq_1_to_2"

  def assert_overlap(&) = assert_overlaps(10) { all_at_once(10, &) }

  def test_late_rows
    reactor do
      clients = Array.new(10) { mysql2 }
      assert_overlap { |number| assert_equal(2, clients[number].query(late_row).size) }
    end
  end

  def test_late_rows_that_are_streamed
    reactor do
      clients = Array.new(10) { mysql2 }
      assert_overlap do |number|
        sizes = clients[number].query(late_row, stream: true, cache_rows: false).map { |row| row["text"].size }

        assert_equal([100_000] * 2, sizes)
        assert_equal({ "one" => 1 }, clients[number].query("SELECT 1 AS one").first)
      end
    end
  end

  def test_prepared_statements
    reactor do
      clients = Array.new(10) { mysql2 }
      assert_overlap do |number|
        statement = clients[number].prepare("SELECT SLEEP(?), ? AS number")

        assert_equal(number, statement.execute(0.3, number).first["number"])
        statement.close
      end
    end
  end

  def test_streamed_rows_of_a_prepared_statement
    reactor do
      rows = mysql2.prepare("SELECT seq FROM seq_1_to_1000").execute(stream: true, cache_rows: false, as: :array)

      assert_equal([*1..1000], rows.map(&:first))
    end
  end

  def test_connecting
    reactor do
      port = mute_port
      assert_times_out(1, Mysql2::Error::ConnectionError) { mysql2(port, connect_timeout: 1) }
    end
  end

  def test_others_run_while_it_pings
    reactor do
      client = mysql2
      waker = nil
      server.paused do
        waker = Process.spawn("sleep 0.3; kill -CONT #{server.pid}")

        assert_others_run { assert(client.ping) }
      end
    ensure
      Process.wait(waker) if waker
    end
  end

  def test_a_long_statement_and_other_calls
    reactor do
      client = mysql2
      text = "x" * 1_000_000

      assert_equal(text.size, client.query("SELECT LENGTH('#{text}') AS size", as: :array).first.first)
      assert_equal("heddle", client.select_db("heddle"))
      assert_raises(Mysql2::Error) { client.query("SELECT nothing") }
      assert_nil(client.query("SELECT 1", async: true))
      assert_equal([{ "1" => 1 }], client.async_result.to_a)
      assert_nil(client.query("DO 1"))
      client.close

      assert_raises(Mysql2::Error) { client.query("SELECT 1") }
      refute(client.ping)
    end
  end

  # Or right, if a busy machine had not begun with the call.
  def assert_broken(client)
    assert_equal([[1]], client.query("SELECT 1", as: :array).to_a)
  rescue Mysql2::Error => e
    refute_match(/in use by/, e.message)
  end

  # Each kind of call that waits in C.
  { rows: ->(client, sql) { client.query(sql) },
    streamed: ->(client, sql) { client.query(sql, stream: true, cache_rows: false).each { nil } },
    statement: ->(client, _) { client.prepare("SELECT SLEEP(50)").execute } }.each do |name, call|
    define_method("test_cancel_of_#{name}") do
      client = nil
      assert_cancels(-> { client = mysql2 }) { call[client, late_row(50)] }

      assert_broken(client)
      reactor { assert_broken(client) }
    end

    define_method("test_close_during_#{name}") do
      reactor do
        client = mysql2
        calling = go { call[client, late_row(50)] }
        sleep(0.1)

        assert_raises(Mysql2::Error) { client.query("SELECT 1") }
        client.close

        assert_kind_of(Mysql2::Error, calling.failure)
        assert_predicate(client, :closed?)
      end
    end
  end

  # mysql2 holds timeouts back until the query has ended.
  def test_timeouts_around
    reactor do
      client = mysql2
      [Timeout, Heddle].each do |owner|
        assert_times_out(0.4, Timeout::Error) { owner.timeout(0.1) { client.query("SELECT SLEEP(0.4)") } }
        assert_equal({ "2" => 2 }, client.query("SELECT 2").first)
      end
      statement = client.prepare("SELECT SLEEP(50)")
      assert_times_out(0.4, Timeout::Error) { Timeout.timeout(0.4) { statement.execute } }
      assert_broken(client)
    end
  end

  def test_a_cancel_while_it_connects_waits_for_the_end
    port = mute_port
    Heddle.run(backend: backend) do
      task = Heddle.spawn { mysql2(port, connect_timeout: 1) }
      task.wait(0.1)

      assert_operator(elapsed { task.cancel.wait(20) }, :>, 0.5)
      assert_predicate(task, :cancelled?)
    end
  end

  # Rows that were not fetched are lost, and with them the connection.
  def test_a_break_while_rows_are_streamed
    reactor do
      client = mysql2
      rows = client.query("SELECT seq FROM seq_1_to_1000000", stream: true, cache_rows: false)

      assert_equal([1, 2], rows.first(2).map { |row| row["seq"] })
      assert_raises(Mysql2::Error) { client.query("SELECT 1") }
    end
  end

  def test_it_connects_again_if_it_may
    reactor do
      client = mysql2(reconnect: true)
      waiting = Heddle.spawn { client.query(late_row(50)) }
      sleep(0.1)
      waiting.cancel.wait(10)

      assert_equal([[1]], client.query("SELECT 1", as: :array).to_a)
      assert_equal([[2]], client.query("SELECT 2", as: :array).to_a)
    end
  end

  def test_without_a_task
    client = mysql2

    assert_equal([[1]], client.query("SELECT 1", as: :array).to_a)
    assert_equal([[2]], client.prepare("SELECT 2").execute(as: :array).to_a)
  end
end
