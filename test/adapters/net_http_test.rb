# frozen_string_literal: true

# bin/test: takes 8 s, 0.3 of a core

require_relative "../test_helper"
require "support/clients/http_matrix"

# Net::HTTP with its adapter: a connection that is kept is right also after a cancel.
http_contracts "NetHttpAdapter", "net-http", file: "net/http", own: true do
  heddle_only "it is about tasks"

  def setup
    super
    require "heddle/adapters/net_http"
  end

  def name_in_table = "Net::HTTP, with its adapter"
  def timeout_errors = [Net::ReadTimeout]
  def after_a_cancel = :usable
  def ask(client, number, seconds) = Integer(client.get(path(number, seconds)).body)
  def close_client(client) = client.finish

  def open_client(timeout:)
    Net::HTTP.start(host, port, use_ssl: tls?, cert_store: (cert_store if tls?), read_timeout: timeout, max_retries: 0)
  end

  # In the midst of the body, whether by a cancel, an error or a throw.
  def test_a_body_that_is_not_read_to_its_end
    Heddle.run(backend: backend) do
      client = open_client(timeout: 10)
      [-> { raise IOError }, -> { throw(:enough) }, -> { Heddle.current_task.cancel && sleep }].each do |leave|
        Heddle.spawn(isolated: true) do
          catch(:enough) do
            client.request_get("/parts?seconds=0.1") { |response| response.read_body { leave.call } }
          end
        end.wait

        assert_equal(3, ask(client, 3, 0))
      end
    ensure
      client&.finish
    end
  end

  # The connection is kept where nothing has ended a request.
  def test_one_connection_for_many_requests
    Heddle.run(backend: backend) do
      client = open_client(timeout: 10)
      socket = client.instance_variable_get(:@socket)

      3.times { |number| assert_equal(number, ask(client, number, 0)) }

      assert_same(socket, client.instance_variable_get(:@socket))
    ensure
      client&.finish
    end
  end
end
