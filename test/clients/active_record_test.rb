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

  def setup
    super
    heddle_only("it is about tasks")
  end

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

  # What goes wrong then may end in tasks that wait for ever, so this program ends as soon as it has said so.
  def test_tasks_share_a_connection
    outcome = run_ruby(<<~RUBY)
      gem "pg"
      gem "activerecord"
      require "active_record"
      Thread.report_on_exception = false
      ActiveRecord::Base.establish_connection(adapter: "postgresql", host: "127.0.0.1", port: #{server.port},
                                              username: "heddle", database: "postgres")
      pool = ActiveRecord::Base.connection_pool
      $VERBOSE = nil
      Warning.define_singleton_method(:warn) { |text, **| $stderr.write(text) && exit!(0) }
      $VERBOSE = false
      Heddle.run(backend: #{backend.dump}) do
        2.times do |number|
          Heddle.spawn { pool.with_connection { |one| one.select_value("SELECT 1 FROM pg_sleep(0.1)") } }
        end
        sleep(20)
        exit!(1)
      end
    RUBY

    assert_equal(1, reports(outcome.err), outcome.err)
    assert_includes(outcome.err, "\nWhat helps: activerecord: config.active_support.isolation_level = :fiber (without ")
  end

  def test_an_error_where_tasks_share_a_connection
    with_pool(:thread) do |pool|
      assert_raises_where_shared(Heddle::SharedIOError, count: 3) { |number| ask(pool, number) }
    end
  end

  def test_isolation_level_fiber
    with_pool(:fiber) do |pool|
      assert_right_and_silent { |number| ask(pool, number) }
      assert_right_and_silent { |number| pool.with_connection { |one| one.transaction { ask(pool, number) } } }
    end
  end
end
