# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients"
require "support/servers/postgres"
require "support/io/shared_io"

# ActiveRecord on pg. It keeps connections by thread, or by fiber.
contract "ActiveRecord" do
  extend TestSupport::Clients
  include TestSupport::SharedIO

  client "pg"
  client "activerecord", file: "active_record", server: TestSupport::Servers::Postgres

  heddle_only "it is about tasks"

  def isolate(level) = ActiveSupport::IsolatedExecutionState.isolation_level = level

  def with_pool(level)
    isolate(level)
    ActiveRecord::Base.establish_connection(adapter: "postgresql", host: host, port: server.port, username: "heddle",
                                            database: "postgres", pool: 10, reaping_frequency: nil)
    yield ActiveRecord::Base.connection_pool
  ensure
    ActiveRecord::Base.remove_connection
    isolate(:thread)
  end

  def ask(pool, number)
    pool.with_connection { |one| one.select_value("SELECT #{number} FROM pg_sleep(0.01)") }
  end

  def test_tasks_share_a_connection
    messages = []
    with_pool(:thread) do |pool|
      ask(pool, 1) # connects, or the tasks would take turns with that
      assert_raises_where_shared(Heddle::SharedIOError, count: 3) do |number|
        ask(pool, number)
      rescue Heddle::SharedIOError => e
        messages << e.message
        raise
      end
    end

    assert_includes(messages.first, "What helps: activerecord: config.active_support.isolation_level = :fiber (")
  end

  def test_isolation_level_fiber
    with_pool(:fiber) do |pool|
      assert_right_and_silent { |number| ask(pool, number) }
      assert_right_and_silent { |number| pool.with_connection { |one| one.transaction { ask(pool, number) } } }
    end
  end

  # Threads of ActiveRecord ask, and the task waits for them with a lock. Each has the answer to its own question.
  def test_load_async
    with_async_queries do
      with_pool(:fiber) do
        model = Class.new(ActiveRecord::Base) { self.table_name = "pg_timezone_abbrevs" }
        load = lambda do |number, seconds|
          ActiveRecord::Base.asynchronous_queries_tracker.start_session # as a request does
          query = "(SELECT #{number} AS number FROM pg_sleep(#{seconds})) AS pg_timezone_abbrevs"
          model.from(query).select(:number).load_async
        end

        assert_right_and_silent { |number| load.call(number, 0.01).to_a.first.number }
        assert_cancels { load.call(1, 0.5).to_a }
        assert_equal(2, Heddle.run(backend: backend) { assert_others_run { load.call(2, 0.1).to_a.first.number } })
      end
    end
  end

  def with_async_queries
    ActiveRecord.async_query_executor = :global_thread_pool
    yield
  ensure
    executor = ActiveRecord.global_thread_pool_async_query_executor
    executor.shutdown
    executor.wait_for_termination(20)
    ActiveRecord.instance_variable_set(:@global_thread_pool_async_query_executor, nil)
    ActiveRecord.async_query_executor = nil
  end
end
