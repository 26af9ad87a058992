# frozen_string_literal: true

# bin/test: takes 12 s, 0.2 of a core

require_relative "../test_helper"
require "support/clients"

# sqlite3: tasks with a connection each wait for the lock of one of them. With and without the adapter.
contract "SQLite3Adapter" do
  extend TestSupport::Clients

  client "sqlite3"

  heddle_only "it is about tasks"

  def setup
    super
    @file = File.join(tempdir, "database")
    open_database.execute("CREATE TABLE numbers (number INTEGER)")
  end

  def adapt = require("heddle/adapters/sqlite3")
  def open_database = keep(SQLite3::Database.new(@file))
  def numbers = open_database.execute("SELECT number FROM numbers ORDER BY number").flatten

  def insert(database, number, seconds = 0)
    database.transaction(:immediate) do
      database.execute("INSERT INTO numbers VALUES (?)", [number])
      block_given? ? yield : sleep(seconds)
    end
  end

  # The block sets how long a connection waits for the lock. Another task holds it for this number of seconds, or until
  # #others_have_run.
  def while_locked(seconds = nil)
    Heddle.run(backend: backend) do
      holder = Heddle.spawn { insert(open_database, 1) { seconds ? sleep(seconds) : others_have_run } }
      yield(open_database)
      holder.wait
    end
  end

  # So that the adapter can be dropped when the library waits in another way.
  def test_without_the_adapter
    program = <<~RUBY
      require "heddle"
      require "sqlite3"
      one, other = Array.new(2) { SQLite3::Database.new("#{@file}") }
      other.busy_timeout = 300
      Heddle.run do
        Heddle.spawn { one.transaction(:immediate) { sleep(0.05) } }
        other.execute("INSERT INTO numbers VALUES (2)")
      rescue SQLite3::BusyException
        print("busy")
      end
    RUBY

    assert_equal("busy", assert_script(program, gems: true))
  end

  %i[busy_timeout= busy_timeout busy_handler_timeout=].each do |setting|
    define_method("test_a_task_waits_for_the_lock_of_another_with_#{setting}") do
      adapt
      while_locked do |database|
        database.public_send(setting, 10_000)
        assert_others_run { insert(database, 2) }
      end

      assert_equal([1, 2], numbers)
    end
  end

  # The setting that sqlite3 has itself.
  def test_without_the_adapter_but_with_the_setting
    while_locked do |database|
      database.busy_handler_timeout = 10_000
      assert_others_run { insert(database, 2) }
    end

    assert_equal([1, 2], numbers)
  end

  def test_ten_writers
    adapt
    Heddle.run(backend: backend) do
      Heddle.each(1..10) do |number|
        database = open_database
        database.busy_timeout = 20_000
        insert(database, number, 0.01)
      end
    end

    assert_equal([*1..10], numbers)
  end

  def test_the_time_is_over
    adapt
    while_locked(2) do |database|
      database.busy_timeout = 400
      assert_times_out(0.4, SQLite3::BusyException) { insert(database, 2) }
    end

    assert_equal([1], numbers)
  end

  def test_a_timeout_around
    adapt
    while_locked(2) do |database|
      database.busy_timeout = 10_000
      assert_times_out(0.4, Timeout::Error) { Timeout.timeout(0.4) { insert(database, 2) } }
      insert(database, 3)
    end

    assert_equal([1, 3], numbers)
  end

  def test_cancel
    adapt
    while_locked(0.5) do |database|
      database.busy_timeout = 10_000
      waiting = Heddle.spawn { insert(database, 2) }
      waiting.wait(0.05)
      waiting.cancel.wait(10)

      assert_predicate(waiting, :cancelled?)
      insert(database, 3)
    end

    assert_equal([1, 3], numbers)
  end

  # The connection must not be used in the middle of its wait.
  def test_another_task_uses_the_same_connection
    adapt
    while_locked(0.2) do |database|
      database.busy_timeout = 10_000
      statement = database.prepare("SELECT 1")
      waiting = Heddle.spawn { insert(database, 2) }
      waiting.wait(0.05)

      assert_raises(SQLite3::MisuseException) { database.execute("SELECT 1") }
      assert_raises(SQLite3::MisuseException) { statement.step }
      waiting.wait

      assert_equal([[1]], statement.to_a)
      statement.close
    end

    assert_equal([1, 2], numbers)
  end

  def test_without_a_task
    adapt
    holder = open_database
    database = open_database
    database.busy_timeout = 50

    holder.transaction(:immediate) do
      assert_raises(SQLite3::BusyException) { insert(database, 2) }
    end
    database.busy_handler(nil)
    insert(database, 3)

    assert_equal([3], numbers)
  end

  # A transaction is done as a whole or not at all, whatever ends its block.
  { cancel: ->(work) { Heddle.spawn(&work).then { |task| sleep(0.02) && task.cancel.wait } },
    a_failed_sibling: lambda do |work|
      Heddle.scope do
        Heddle.spawn(&work)
        sleep(0.02) && raise(IOError)
      end
    end,
    heddle_timeout: ->(work) { Heddle.timeout(0.02, &work) },
    timeout: ->(work) { Timeout.timeout(0.02) { work.call } },
    an_error: ->(work) { work.call(-> { raise IOError }) },
    no_standard_error: ->(work) { work.call(-> { raise NotImplementedError }) } }.each do |name, ending|
    define_method("test_half_a_transaction_#{name}") do
      adapt
      database = open_database
      work = lambda do |then_does = -> { sleep(5) }|
        database.transaction do
          database.execute("INSERT INTO numbers VALUES (1)")
          then_does.call
          database.execute("INSERT INTO numbers VALUES (2)")
        end
      end
      Heddle.run(backend: backend) do
        ending.call(work)
      rescue IOError, Timeout::Error, NotImplementedError
        nil
      end

      assert_empty(numbers)
      Heddle.run(backend: backend) { work.call(-> {}) }

      assert_equal([1, 2], numbers)
    end
  end

  # What leaves the block without an exception commits, as without the adapter; also amid a rescue.
  def test_a_transaction_that_is_left
    adapt
    database = open_database
    Heddle.run(backend: backend) do
      database.transaction { database.execute("INSERT INTO numbers VALUES (1)") && break }
      raise IOError
    rescue IOError
      database.transaction { database.execute("INSERT INTO numbers VALUES (2)") }
      catch(:out) { database.transaction { database.execute("INSERT INTO numbers VALUES (3)") && throw(:out) } }
    end

    assert_equal([1, 2, 3], numbers)
  end
end
