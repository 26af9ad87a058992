# frozen_string_literal: true

require "support/servers/postgres"

module TestSupport
  # What may happen to a database while jobs run. In the test, #server is the server, and #database is the name of the
  # database of the program.
  module PostgresOutages
    # Whose connections a test can take all.
    class Server < Servers::Postgres
      private

      def most_connections = 40
    end

    # How long an outage lasts.
    SECONDS = 3

    OUTAGES = { a_restart: :restart, read_only: :read_only, no_connections: :without_connections }.freeze

    # @return [Server] of this test alone, for it is another process after a restart
    attr_reader :server

    private

    def start_server
      skip(Server.missing) if Server.missing
      @server = Server.new.tap(&:start)
    end

    def stop_server = @server&.stop

    def restart = server.restart

    # As a primary that has become a replica. The transactions that have begun go on.
    def read_only
      make_read_only("on")
      sleep(SECONDS)
    ensure
      make_read_only("off")
    end

    def make_read_only(value)
      with_database do |admin|
        admin.exec("ALTER SYSTEM SET default_transaction_read_only = #{value}")
        admin.exec("SELECT pg_reload_conf()")
      end
    end

    # Other programs have all connections, and those of this one have broken.
    def without_connections
      others = []
      admin = connect
      loop do
        20.times { take_connections(others) }
        break if admin.exec(<<~SQL).ntuples.zero?
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '#{database}'
        SQL
      end
      sleep(SECONDS)
    ensure
      [*others, admin].compact.each(&:close)
    end

    def take_connections(others)
      loop { others << connect }
    rescue PG::ConnectionBad
      sleep(0.001)
    end

    def connect(name = "postgres") = PG.connect(host: "127.0.0.1", port: server.port, user: "heddle", dbname: name)

    def with_database(name = "postgres")
      client = connect(name)
      yield(client)
    ensure
      client&.close
    end
  end
end
