# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/mariadb"

# mysql2 with its adapter: the garbage collector frees prepared statements, and their results, while another answer is
# under way. The library would read from the connection then.
contract "Mysql2Statements" do
  extend TestSupport::Clients

  client "mysql2", server: TestSupport::Servers::Mariadb

  heddle_only "it is about tasks"

  def setup
    super
    require "heddle/adapters/mysql2"
  end

  def mysql2
    keep(Mysql2::Client.new(host: "127.0.0.1", port: server.port, username: "heddle", database: "heddle"))
  end

  # Nobody refers to them any more.
  def abandon(client, number = 5)
    number.times do
      made = Thread::Queue.new
      task = Heddle.spawn(isolated: true) do
        made << yield(client.prepare("SELECT seq, ? FROM seq_1_to_2000")).class
        sleep
      end
      made.pop
      task.cancel.wait
    end
  end

  # @return [Integer] how many rows have come; the collector runs when the tenth has
  def stream(client, rows = 3000)
    seen = 0
    client.query("SELECT seq, 7 AS n FROM seq_1_to_#{rows}", stream: true, cache_rows: false).each do |row|
      seen += 1 if row["n"] == 7
      GC.start if seen == 10
    end
    seen
  end

  { streamed: ->(statement) { statement.execute(1, stream: true, cache_rows: false) },
    stored: ->(statement) { statement.execute(1) },
    read: ->(statement) { statement.execute(1).to_a },
    prepared: ->(statement) { statement } }.each do |name, use|
    define_method("test_statements_that_are_#{name}") do
      reactor do
        client = mysql2
        abandon(client, &use)
        counts = Array.new(3) { stream(client) }

        assert_equal([3000] * 3, counts)
      end
    end
  end

  # Also not while an answer is late: nobody waits for it but its task.
  def test_the_collector_waits_for_no_answer
    reactor do
      client = mysql2
      abandon(client) { |statement| statement.execute(1, stream: true, cache_rows: false) }
      sql = "SELECT SLEEP(1.5) AS slept, REPEAT('x', 50000) AS text FROM seq_1_to_2"
      asking = go { client.query(sql, stream: true, cache_rows: false).sum { |row| row["text"].size } }
      sleep(0.1)
      GC.start

      refute_predicate(asking, :finished?)
      assert_equal(100_000, asking.value)
    end
  end

  # They are freed between the calls: the number does not grow in a program that closes none of them.
  def test_they_are_freed
    reactor do
      client = mysql2
      50.times { |number| abandon_plainly(client, number) }
      GC.start
      client.query("DO 1")
      GC.start

      assert_operator(ObjectSpace.each_object(Mysql2::Statement).count, :<, 20)
    end
  end

  def abandon_plainly(client, number)
    assert_equal(number, client.prepare("SELECT ? AS number").execute(number).first["number"])
  end
end
