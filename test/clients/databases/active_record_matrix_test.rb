# frozen_string_literal: true

# bin/test: takes 15 s, 0.3 of a core

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/mariadb"
require "support/servers/postgres"

# ActiveRecord's connections in tasks, with isolation_level :fiber.
{
  "pg" => ["postgresql", TestSupport::Servers::Postgres, { database: "postgres" }],
  "trilogy" => ["trilogy", TestSupport::Servers::Mariadb, { database: "heddle" }],
  # mysql2 closes its socket in C, and epoll does not report that. Its own limit ends the wait.
  "mysql2" => ["mysql2", TestSupport::Servers::Mariadb, { database: "heddle", read_timeout: 3 }]
}.each do |gem, (adapter, server, options)|
  contract "ActiveRecord#{gem.capitalize}" do
    extend TestSupport::Clients

    include TestSupport::ClientMatrix

    client gem
    client "activerecord", file: "active_record", server: server

    define_method(:title) { "ActiveRecord (#{gem}), isolation_level :fiber" }
    def after_a_cancel = :usable
    define_method(:settings) do
      { adapter:, host: "127.0.0.1", port: self.server.port, username: "heddle", pool: 60, checkout_timeout: 20,
        reaping_frequency: nil, **options }
    end

    heddle_only "it is about tasks"

    def setup
      super
      @lock = Mutex.new
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
    end

    def teardown
      ActiveRecord::Base.remove_connection if @pool
      ActiveSupport::IsolatedExecutionState.isolation_level = :thread if defined?(ActiveRecord)
      super
    end

    # establish_connection waits. If another task called it meanwhile, its pool would take the place of this one.
    def pool
      @lock.synchronize do
        @pool ||= begin
          ActiveRecord::Base.establish_connection(**settings)
          ActiveRecord::Base.connection_pool
        end
      end
    end

    # One connection of the pool.
    def open_client(timeout:) = pool.checkout.tap { |one| one.execute(limit(one, timeout)) }
    def timeout_errors = [ActiveRecord::StatementInvalid]

    def limit_of_the_server? = true

    def limit(connection, seconds)
      return "SET max_statement_time = #{seconds}" unless connection.adapter_name == "PostgreSQL"

      "SET statement_timeout = #{(seconds * 1000).to_i}"
    end

    def close_client(client)
      client.disconnect!
      pool.remove(client)
    end

    def ask(client, number, seconds)
      pause = client.adapter_name == "PostgreSQL" ? "pg_sleep(#{seconds})" : "(SELECT SLEEP(#{seconds}))"
      client.select_value("SELECT #{number} FROM #{pause} AS pause")
    end
  end
end
