# frozen_string_literal: true

# bin/test: takes 20 s, 0.6 of a core

require_relative "../../test_helper"
require "support/clients/http_matrix"
require "support/io/shared_io"

# Faraday, with each of the adapters that people use; they are tested in the clear by themselves.
{ "net_http" => "faraday-net_http", "excon" => "faraday-excon", "httpx" => "httpx" }.each do |adapter, gem|
  missing = TestSupport::Clients.load("faraday") ||
            TestSupport::Clients.load(gem, gem == "httpx" ? "httpx/adapters/faraday" : gem.tr("-", "/"))

  http_contracts "Faraday#{adapter.capitalize}", "faraday", plain: false do
    include TestSupport::SharedIO

    define_method(:adapter) { adapter.to_sym }
    define_method(:setup) { super().tap { skip(missing) if missing } }

    def name_in_table = "Faraday, #{adapter}"
    def timeout_errors = [Faraday::TimeoutError]
    def errors_of_a_server_that_stands_still = [Faraday::TimeoutError, Faraday::ConnectionFailed]

    # So it is for the TLS handshake of excon, with threads as well.
    def limit_of_the_server? = adapter == :excon

    def connects_for_each_question? = true
    def ask(client, number, seconds) = Integer(client.get(path(number, seconds)).body)
    def close_client(client) = client.close

    # One request first: what is made once does not count.
    def open_client(timeout:)
      # Faraday does not hand this on. Without it, excon would read the certificates of the system for each connection.
      own = adapter == :excon ? { ssl_cert_store: cert_store, ssl_ca_file: server.certificate_file } : {}
      client = Faraday.new(base, ssl: { cert_store: cert_store }, request: { timeout: timeout }) do |one|
        one.adapter(adapter, **own)
      end
      client.tap { ask(client, 0, 0) }
    end

    # Each request has a connection of its own, but httpx keeps one.
    def test_tasks_share_one
      heddle_only("it is about tasks")
      shared = Heddle.run { open_client(timeout: 10) }
      if adapter == :httpx
        assert_warns("httpx: a session with the plugin :persistent") { |number| ask(shared, number, 0.3) }
      else
        assert_right_and_silent { |number| ask(shared, number, 0.01) }
      end
    ensure
      shared&.close
    end
  end
end
