# frozen_string_literal: true

require "support/clients"
require "support/servers/postgres"

module TestSupport
  # Connections of pg that end with their test.
  module PgConnections
    def connect(port = server.port, **options)
      PG.connect(host: host, port: port, user: "heddle", dbname: "postgres", **options).tap do |client|
        (@clients ||= []) << client
      end
    end

    def teardown
      @clients&.each { |client| client.close unless client.finished? }
      super
    end
  end
end
