# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/mariadb"

# trilogy, with a MariaDB.
contract "TrilogyClient" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "trilogy", server: TestSupport::Servers::Mariadb

  def title = "trilogy"
  def open_client(timeout:) = trilogy(read_timeout: timeout)
  def close_client(client) = client.close
  def timeout_errors = [Trilogy::TimeoutError]
  def after_a_cancel = :broken

  def ask(client, number, seconds)
    client.query("SELECT #{number} FROM (SELECT SLEEP(#{seconds})) AS pause").first.first
  end

  def trilogy(port = server.port, **options)
    keep(Trilogy.new(host: host, port: port, username: "heddle", database: "heddle", **options))
  end

  def test_fifty_tasks_at_the_same_time
    reactor do
      trilogy.query("CREATE OR REPLACE TABLE fifty (number INT, turn INT)")
      values, most = all_at_once(50) do |number|
        client = trilogy
        3.times { |turn| client.query("INSERT INTO fifty VALUES (#{number}, #{turn})") }
        client.query("SELECT SUM(turn) AS sum, number FROM fifty WHERE number = #{number}").to_a
      end

      assert_equal(Array.new(50) { |number| [[3, number]] }, values)
      assert_operator(most, :>, 10)
    end
  end

  def test_slow_queries_overlap
    reactor do
      clients = Array.new(20) { trilogy }
      assert_overlaps(20) do
        values, = all_at_once(20) { |number| clients[number].query("SELECT SLEEP(0.3)").to_a }

        assert_equal([[[0]]], values.uniq)
      end
    end
  end

  def test_a_long_answer
    reactor do
      rows = assert_others_run do
        trilogy.query("SELECT seq, REPEAT('x', 1000) AS text FROM seq_1_to_10000, (SELECT SLEEP(0.1)) AS pause").to_a
      end

      assert_equal([10_000, 1000], [rows.size, rows.last.last.size])
    end
  end

  def test_one_client_is_for_one_task
    reactor do
      client = trilogy
      waiting = go { client.query("SELECT SLEEP(0.2)") }
      settle
      sleep(0.05)

      assert_raises(Trilogy::SynchronizationError) { client.query("SELECT 1") }
      assert_equal([[0]], waiting.value.to_a)
    end
  end

  def test_read_timeout
    reactor do
      client = trilogy(read_timeout: 0.2)
      assert_times_out(0.2, Trilogy::TimeoutError) { client.query("SELECT SLEEP(50)") }

      assert_raises(Trilogy::EOFError) { client.query("SELECT 1") }
      assert_equal([[1]], trilogy.query("SELECT 1").to_a)
    end
  end

  def test_connect_timeout
    reactor do
      port = silent_port
      assert_times_out(0.2, Trilogy::TimeoutError) { trilogy(port, connect_timeout: 0.2) }
      port = mute_port
      assert_times_out(0.2, Trilogy::TimeoutError) { trilogy(port, connect_timeout: 0.2) }
    end
  end

  def test_timeout_around
    reactor do
      client = trilogy
      assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { client.query("SELECT SLEEP(50)") } }

      # It does not wait for the rest of the answer.
      assert_raises(Trilogy::EOFError) { client.query("SELECT 1") }
    end
  end

  def test_cancel
    client = nil
    assert_cancels(-> { client = trilogy }) { client.query("SELECT SLEEP(50)") }

    assert_raises(Trilogy::EOFError) { client.query("SELECT 1") }
  end

  def test_closed_by_the_server
    reactor do
      client = trilogy
      killing = trilogy
      id = client.query("SELECT CONNECTION_ID()").first.first
      waiting = go { client.query("SELECT SLEEP(50)") }
      settle
      sleep(0.05)
      killing.query("KILL #{id}")

      assert_kind_of(Trilogy::BaseError, waiting.failure)
      assert_raises(Trilogy::BaseError, Trilogy::ConnectionClosed) { client.query("SELECT 1") }
    end
  end
end
