# frozen_string_literal: true

# bin/test: takes 15 s, 0.2 of a core

require_relative "../../test_helper"
require "support/clients/mysql2_matrix"
require "support/servers/mariadb"

# mysql2, with a MariaDB. It cooperates in part: it waits for the first bytes of an answer with Ruby, and for all else
# in C. The tests of what holds up the other tasks also say so if a later version does not any more.
contract "Mysql2Client" do
  extend TestSupport::Clients

  include TestSupport::Mysql2Matrix

  client "mysql2", server: TestSupport::Servers::Mariadb

  def title = "mysql2"

  # It closes its socket in C, which epoll does not tell of.
  def timeout_of_one_that_is_closed = 2

  # A row that fills the buffer of the server, which so sends it at once, and then one that comes 0.3 s later.
  def late_row = "SELECT REPEAT('x', 100000) AS text, IF(seq = 2, SLEEP(0.3), 0) FROM seq_1_to_2"

  # How long the block keeps the other tasks from running.
  def hold
    heddle_only("it is about tasks")
    Heddle.run(backend: backend) do
      client = mysql2
      longest_gaps { yield(client) }.first
    end
  end

  def assert_holds(seconds, hold) = assert_operator(hold, :>, seconds * 0.8, "it does not hold up the others any more")

  def test_fifty_tasks_at_the_same_time
    reactor do
      mysql2.query("CREATE OR REPLACE TABLE fifty_rows (number INT, turn INT)")
      values, = all_at_once(50) do |number|
        client = mysql2
        3.times { |turn| client.query("INSERT INTO fifty_rows VALUES (#{number}, #{turn})") }
        client.query("SELECT SUM(turn) AS sum, number FROM fifty_rows WHERE number = #{number}", as: :array).to_a
      end

      assert_equal(Array.new(50) { |number| [[3, number]] }, values)
    end
  end

  def test_connecting_holds_up_the_others
    port = mute_port
    hold = hold { assert_raises(Mysql2::Error::ConnectionError) { mysql2(port, connect_timeout: 1) } }

    assert_holds(1, hold)
    note(holds: "it connects", seconds: hold)
  end

  def test_late_rows_hold_up_the_others
    hold = hold { |client| assert_equal(2, client.query(late_row).size) }

    assert_holds(0.3, hold)
    note(holds: "it reads rows that come late", seconds: hold)
  end

  def test_late_rows_that_are_streamed_hold_up_the_others
    hold = hold do |client|
      assert_equal(2, client.query(late_row, stream: true, cache_rows: false).sum { 1 })
    end

    assert_holds(0.3, hold)
    note(holds: "it reads rows that come late", seconds: hold)
  end

  def test_a_prepared_statement_holds_up_the_others
    hold = hold { |client| assert_equal(1, client.prepare("SELECT SLEEP(?)").execute(0.3).size) }

    assert_holds(0.3, hold)
    note(holds: "it executes a prepared statement", seconds: hold)
  end

  def test_a_ping_after_a_pause_of_the_server_holds_up_the_others
    hold = hold do |client|
      waker = nil
      server.paused do
        waker = Process.spawn("sleep 0.3; kill -CONT #{server.pid}")

        assert(client.ping)
      end
    ensure
      Process.wait(waker) if waker
    end

    assert_holds(0.3, hold)
  end

  # The remedy: the blocking calls in a thread of the pool.
  def test_offload_lets_the_others_run
    reactor do
      client = assert_others_run(at_least: 0) { offload { mysql2 } }
      rows = assert_others_run { offload { client.query(late_row).size } }
      row = assert_others_run { offload { client.prepare("SELECT SLEEP(?)").execute(0.3).first } }

      assert_equal([2, 0], [rows, row.values.first])
    end
  end

  def offload(&) = reference? ? yield : Heddle.offload(&)

  # The answer is waited for outside of mysql2.
  def test_async_queries
    reactor do
      clients = Array.new(20) { mysql2 }
      assert_overlaps(20) do
        values, = all_at_once(20) do |number|
          client = clients[number]
          client.query("SELECT #{number} AS number FROM (SELECT SLEEP(0.3)) AS pause", async: true)
          IO.for_fd(client.socket, autoclose: false).wait_readable(20)
          client.async_result.first["number"]
        end

        assert_equal([*0...20], values)
      end
    end
  end

  def test_one_client_is_for_one_task
    reactor do
      client = mysql2
      waiting = go { client.query("SELECT SLEEP(0.5) AS pause").first }
      settle
      sleep(0.05)
      error = assert_raises(Mysql2::Error) { client.query("SELECT 1") }

      assert_match(/already waiting|currently waiting|in use by/, error.message)
      assert_equal({ "pause" => 0 }, waiting.value)
    end
  end

  # It does not let Timeout interrupt a query: the error comes after the answer.
  def test_timeout_around
    reactor do
      client = mysql2
      assert_times_out(0.5, Timeout::Error) { Timeout.timeout(0.1) { client.query("SELECT SLEEP(0.5)") } }

      assert_equal([{ "1" => 1 }], client.query("SELECT 1").to_a)
    end
  end
end
