# frozen_string_literal: true

require "support/clients/client_matrix"

module TestSupport
  # What ClientMatrix asks of mysql2, as it is and with its adapter.
  module Mysql2Matrix
    include ClientMatrix

    def open_client(timeout:) = mysql2(read_timeout: timeout)
    def close_client(client) = client.close
    def timeout_errors = [Mysql2::Error::TimeoutError]
    def after_a_cancel = :broken

    # It knows whole seconds.
    def shortest_timeout = 1

    def ask(client, number, seconds)
      client.query("SELECT #{number} AS number FROM (SELECT SLEEP(#{seconds})) AS pause").first["number"]
    end

    def mysql2(port = server.port, **options)
      keep(Mysql2::Client.new(host: "127.0.0.1", port: port, username: "heddle", database: "heddle", **options))
    end
  end
end
