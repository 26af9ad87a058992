# frozen_string_literal: true

# bin/test: takes 14 s, 0.3 of a core

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/clients/pg_connections"

# pg, with a PostgreSQL.
contract "PgClient" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix
  include TestSupport::PgConnections

  client "pg", server: TestSupport::Servers::Postgres

  def title = "pg"
  def close_client(client) = client.close
  def timeout_errors = [PG::QueryCanceled]

  # libpq has none for an answer.
  def limit_of_the_server? = true

  def open_client(timeout:) = connect(options: "-c statement_timeout=#{(timeout * 1000).to_i}")

  def ask(client, number, seconds)
    Integer(client.exec_params("SELECT $1::int FROM pg_sleep($2)", [number, seconds]).getvalue(0, 0))
  end

  def test_fifty_tasks_at_the_same_time
    reactor do
      table = "fifty_#{backend}"
      connect.exec("CREATE TABLE #{table} (number INT, turn INT)")
      values, most = all_at_once(50) do |number|
        client = connect
        3.times { |turn| client.exec_params("INSERT INTO #{table} VALUES ($1, $2)", [number, turn]) }
        client.exec("SELECT SUM(turn), number FROM #{table} WHERE number = #{number} GROUP BY number").values
      end

      assert_equal(Array.new(50) { |number| [["3", number.to_s]] }, values)
      assert_operator(most, :>, 10)
    end
  end

  def test_slow_queries_overlap
    reactor do
      clients = Array.new(20) { connect }
      assert_overlaps(20) { all_at_once(20) { |number| clients[number].exec("SELECT pg_sleep(0.3)") } }
    end
  end

  def test_connecting_overlaps
    reactor do
      _, most = all_at_once(20) { connect }

      assert_operator(most, :>, 5)
    end
  end

  def test_prepared_statements_and_transactions
    reactor do
      client = connect
      client.prepare("double", "SELECT 2 * $1::int AS twice")

      assert_equal("42", assert_others_run(at_least: 0) { client.exec_prepared("double", [21]) }.getvalue(0, 0))
      client.transaction do
        client.exec("CREATE TEMP TABLE kept (n INT)")
        client.exec("INSERT INTO kept VALUES (1)")
      end

      assert_equal([["1"]], client.exec("SELECT * FROM kept").values)
    end
  end

  def test_copy
    reactor do
      client = connect
      client.exec("CREATE TEMP TABLE copied (text TEXT)")
      line = "#{"x" * 1000}\n"
      client.copy_data("COPY copied FROM STDIN") { 2000.times { client.put_copy_data(line) } }
      rows = 0
      client.copy_data("COPY copied TO STDOUT") { rows += 1 while client.get_copy_data }

      assert_equal(2000, rows)
    end
  end

  def test_single_rows
    reactor do
      client = connect
      client.send_query("SELECT generate_series(1, 5000) AS n")
      client.set_single_row_mode
      sum = 0
      client.get_result.stream_each { |row| sum += row["n"].to_i }
      client.get_last_result

      assert_equal(5000 * 5001 / 2, sum)
    end
  end

  def test_notifications
    reactor do
      listening = connect
      listening.exec("LISTEN news")
      go { (sleep 0.1) && connect.exec("NOTIFY news, 'hello'") }
      payload = nil
      assert_others_run { listening.wait_for_notify(5) { |_, _, text| payload = text } }

      assert_equal("hello", payload)
      assert_nil(listening.wait_for_notify(0.05))
    end
  end

  def test_statement_timeout
    reactor do
      client = connect(options: "-c statement_timeout=200")
      assert_times_out(0.2, PG::QueryCanceled) { client.exec("SELECT pg_sleep(50)") }

      assert_equal([["1"]], client.exec("SELECT 1").values)
    end
  end

  # libpq knows whole seconds, and no fewer than 2.
  def test_connect_timeout
    reactor do
      port = mute_port
      assert_times_out(1, PG::ConnectionBad) { connect(port, connect_timeout: 2) }
    end
  end

  # The query goes on in the server: cancel ends it there.
  def test_timeout_around
    reactor do
      client = connect
      assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { client.exec("SELECT pg_sleep(50)") } }
      client.cancel
      client.discard_results

      assert_equal([["1"]], client.exec("SELECT 1").values)
    end
  end

  def test_cancel
    client = nil
    assert_cancels(-> { client = connect }) { client.exec("SELECT pg_sleep(50)") }
    reactor do
      client.reset

      assert_equal([["1"]], client.exec("SELECT 1").values)
    end
  end

  # pg leaves the descriptor to the garbage collector when it is cancelled while it connects. Not in a shield.
  def test_a_cancel_while_it_connects
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      20.times do |turn|
        task = Heddle.spawn do
          client = Heddle.shield { PG.connect(host: host, port: server.port, user: "heddle", dbname: "postgres") }
          sleep
        ensure
          client&.close
        end
        sleep(0.0004 * turn)
        task.cancel.wait(20)

        assert_predicate(task, :cancelled?)
      end
    end
  end

  def test_closed_by_the_server
    reactor do
      client = connect
      waiting = go { client.exec("SELECT pg_sleep(50)") }
      sleep(0.1)
      connect.exec("SELECT pg_terminate_backend(#{client.backend_pid})")

      assert_kind_of(PG::Error, waiting.failure)
      client.reset

      assert_equal([["1"]], client.exec("SELECT 1").values)
    end
  end
end
