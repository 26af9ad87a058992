# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/postgres"
require "support/io/shared_io"

# Sequel on pg. Its pool gives a connection to a thread, or with an extension to a fiber.
contract "Sequel" do
  extend TestSupport::Clients
  include TestSupport::ClientMatrix
  include TestSupport::SharedIO

  client "pg"
  client "sequel", server: TestSupport::Servers::Postgres

  heddle_only "it is about tasks"

  def title = "Sequel (pg), fiber_concurrency"
  def close_client(client) = client.disconnect
  def timeout_errors = [Sequel::DatabaseError]

  # libpq has none for an answer.
  def limit_of_the_server? = true

  def open_client(timeout:)
    Sequel.extension(:fiber_concurrency)
    limit = "SET statement_timeout = #{(timeout * 1000).to_i}"
    database(max_connections: 1, connect_sqls: [limit]).tap(&:test_connection)
  end

  # The matrix asks with seconds, the tests of shared connections without.
  def ask(database, number, seconds = 0.01)
    database.fetch("SELECT pg_sleep(#{seconds}), #{number} AS number").first[:number]
  end

  def database(**options)
    Sequel.connect(adapter: "postgres", host: host, port: server.port, user: "heddle", database: "postgres",
                   max_connections: 10, **options)
  end

  # An extension that is loaded stays. This is what Sequel does without it.
  def without_extension
    Sequel.define_singleton_method(:current) { Thread.current }
    yield
  ensure
    Sequel.singleton_class.remove_method(:current)
  end

  def test_tasks_share_a_connection
    without_extension do
      shared = database
      assert_warns("sequel: Sequel.extension(:fiber_concurrency), before Sequel.connect") { |n| ask(shared, n, 0.1) }
      shared.disconnect
      shared = database
      assert_raises_where_shared(Heddle::SharedIOError) { |n| ask(shared, n, 0.1) }
      shared.disconnect
    end
  end

  def test_fiber_concurrency
    Sequel.extension(:fiber_concurrency)
    pool = database
    assert_right_and_silent { |n| ask(pool, n) }
    assert_right_and_silent { |n| pool.transaction { ask(pool, n) } }
    pool.disconnect
  end
end
