# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/postgres"
require "support/shared_io"

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
end
