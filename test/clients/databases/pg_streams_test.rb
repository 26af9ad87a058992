# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/pg_connections"

# What keeps a connection of pg for long: listeners, cursors, rows one by one, COPY and pipelines, in many tasks of one
# thread.
contract "PgStreams" do
  extend TestSupport::Clients

  include TestSupport::PgConnections

  client "pg", server: TestSupport::Servers::Postgres

  def listen(channel) = connect.tap { |client| client.exec("LISTEN #{channel}") }

  # @return [Array<String>] what comes, up to this number
  def notifications(client, count)
    Array.new(count) do
      text = nil
      client.wait_for_notify(20) { |_, _, payload| text = payload }
      text
    end
  end

  # 30 listeners of two channels, five senders: each gets all of its own, those of a sender in their order.
  def test_many_listeners
    reactor do
      listeners = Array.new(30) { |number| listen("news#{number % 2}") }
      waiting = listeners.map { |client| go { notifications(client, 50) } }
      all_at_once(5) do |sender|
        client = connect
        10.times { |turn| 2.times { |n| client.exec("NOTIFY news#{n}, '#{n} #{sender} #{turn}'") } }
      end
      expected = Array.new(2) { |n| Array.new(5) { |sender| Array.new(10) { |turn| "#{n} #{sender} #{turn}" } } }

      waiting.each_with_index do |job, number|
        assert_equal(expected[number % 2], job.value.group_by { |text| text[/ \d+ /] }.sort.map(&:last))
      end
    end
  end

  # A notification that comes between two waits, or with the answer of a query, is kept.
  def test_none_is_lost_between_two_waits
    reactor do
      client = listen("kept")
      sender = connect
      3.times { |n| sender.exec("NOTIFY kept, '#{n}'") }
      client.exec("SELECT 1")

      assert_equal(%w[0 1 2], notifications(client, 3))
      assert_nil(client.wait_for_notify(0.01))
    end
  end

  # Who waits is cancelled, over and over, while they come: what came is for the next wait.
  def test_none_is_lost_to_a_cancel
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = listen("cancelled")
      sender = connect
      sending = Heddle.spawn { 100.times { |n| sender.exec("NOTIFY cancelled, '#{n}'") && sleep(0.001) } }
      got = []
      until sending.finished?
        waiting = Heddle.spawn { loop { client.wait_for_notify(5) { |_, _, text| got << text } } }
        sleep(0.0005 * (got.size % 7))
        waiting.cancel.wait(20)
      end
      got.concat(notifications(client, 100 - got.size))

      assert_equal(Array.new(100, &:to_s), got)
    end
  end

  def test_cursors
    reactor do
      sums, most = all_at_once(10) do |number|
        client = connect
        client.transaction do
          client.exec("DECLARE numbers CURSOR FOR SELECT #{number} * generate_series(1, 1000) AS n")
          sum = 0
          until (rows = client.exec("FETCH 90 FROM numbers").column_values(0)).empty?
            sum += rows.sum(&:to_i)
            sleep(0)
          end
          sum
        end
      end

      assert_equal(Array.new(10) { |number| number * 500_500 }, sums)
      assert_equal(10, most)
    end
  end

  # Rows that come one by one, some of them late: the others run meanwhile.
  def test_single_rows_that_come_late
    reactor do
      clients = Array.new(10) { connect }
      sql = "SELECT n, repeat('x', 20000), CASE n WHEN 3 THEN pg_sleep(0.2) END FROM generate_series(1, 5) AS n"
      assert_overlaps(10) do
        values, = all_at_once(10) { |number| single_rows(clients[number], sql) }

        assert_equal([%w[1 2 3 4 5]], values.uniq)
      end
    end
  end

  def single_rows(client, sql)
    client.send_query(sql)
    client.set_single_row_mode
    seen = []
    client.get_result.stream_each { |row| seen << row["n"] }
    client.discard_results
    seen
  end

  # A task is cancelled in the midst of its rows. The rest is thrown away before the next answer.
  def test_a_cancel_between_single_rows
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = connect
      reading = Heddle.spawn { single_rows(client, "SELECT n, pg_sleep(0.05) FROM generate_series(1, 8) AS n") }
      reading.wait(0.1)
      reading.cancel.wait(20)

      assert_equal([["its own"]], client.exec("SELECT 'its own'").values)
    end
  end

  def test_copy_in_and_out_side_by_side
    reactor do
      table = "copied_#{backend}"
      connect.exec("CREATE TABLE #{table} (task INT, turn INT, text TEXT)")
      counts, most = all_at_once(10) { |number| copy_in_and_out(connect, table, number) }
      connect.exec("DROP TABLE #{table}")

      assert_equal([[500, [*0...500]]], counts.uniq)
      assert_equal(10, most)
    end
  end

  def copy_in_and_out(client, table, number)
    client.copy_data("COPY #{table} FROM STDIN (FORMAT csv)") do
      500.times { |turn| client.put_copy_data("#{number},#{turn},#{"x" * 500}\n") }
    end
    sleep(0.05)
    turns = []
    client.copy_data("COPY (SELECT turn FROM #{table} WHERE task = #{number}) TO STDOUT") do
      while (line = client.get_copy_data)
        turns << line.to_i
      end
    end
    [turns.size, turns.sort]
  end

  # A COPY that does not end copies nothing.
  def test_a_cancel_in_the_midst_of_a_copy
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = connect
      client.exec("CREATE TEMP TABLE part (n INT)")
      copying = Heddle.spawn do
        client.copy_data("COPY part FROM STDIN") { loop { client.put_copy_data("1\n") && sleep(0.001) } }
      end
      copying.wait(0.1)
      copying.cancel.wait(20)

      assert_predicate(copying, :cancelled?)
      assert_equal([["0"]], client.exec("SELECT count(*) FROM part").values)
    end
  end

  def test_a_cancel_while_rows_are_copied_out
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = connect
      copying = Heddle.spawn do
        client.copy_data("COPY (SELECT generate_series(1, 20000)) TO STDOUT") do
          sleep(0.001) while client.get_copy_data
        end
      end
      copying.wait(0.1)
      copying.cancel.wait(20)

      assert_predicate(copying, :cancelled?)
      assert_equal([["its own"]], client.exec("SELECT 'its own'").values)
    end
  end

  def test_pipelines
    reactor do
      values, most = all_at_once(10) { |number| pipeline(connect, number) }

      assert_equal(Array.new(10) { |number| Array.new(50) { |turn| (number * 1000) + turn } }, values)
      assert_equal(10, most)
    end
  end

  # The client is in pipeline mode with questions that are open: it says so, and is ready after a reset.
  def test_a_cancel_in_the_midst_of_a_pipeline
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = connect
      asking = Heddle.spawn { pipeline(client, 1, 0.02) }
      asking.wait(0.02)
      asking.cancel.wait(20)

      assert_predicate(asking, :cancelled?)
      assert_raises(PG::Error) { client.exec("SELECT 1") }
      client.reset

      assert_equal([["its own"]], client.exec("SELECT 'its own'").values)
    end
  end

  # 50 questions are sent before the first answer is taken.
  def pipeline(client, number, seconds = 0.001)
    client.enter_pipeline_mode
    50.times { |turn| client.send_query_params("SELECT $1::int, pg_sleep($2)", [(number * 1000) + turn, seconds]) }
    client.pipeline_sync
    answers = Array.new(50) do
      client.get_result.tap { client.get_result }.getvalue(0, 0).to_i # (nil ends each answer)
    end
    client.get_result # the sync
    client.exit_pipeline_mode
    answers
  end
end
