# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/http_server"
require "net/http"

# Net::HTTP by name, plain and with TLS.
contract "NetHttp" do
  extend TestSupport::Clients

  client "net/http"

  def server(**options) = keep(TestSupport::HttpServer.new(**options))

  def http(port, **options)
    Net::HTTP.new(host, port).tap do |client|
      client.max_retries = 0
      options.each { |name, value| client.public_send("#{name}=", value) }
    end
  end

  # The header of what is posted.
  def text = { "Content-Type" => "text/plain" }

  # What a client needs to trust the server.
  def tls = { use_ssl: true, cert_store: TestSupport::Certificate.client_context.cert_store }

  def test_fifty_tasks_at_the_same_time
    reactor do
      [[server, {}], [server(tls: true), tls]].each do |one, options|
        values = nil
        assert_overlaps(0.3, 50 * 0.3) do
          values, = all_at_once(50) do
            http(one.port, **options).get("/sleep/0.3").body
          end
        end

        assert_equal(["GET 1 0"], values.uniq)
      end
    end
  end

  def test_one_connection_for_many_requests
    reactor do
      bodies = http(server(tls: true).port, **tls).start do |client|
        [client.get("/"), client.post("/", "x" * 100_000, text), client.get("/")].map(&:body)
      end

      assert_equal(["GET 1 0", "POST 2 100000", "GET 3 0"], bodies)
    end
  end

  def test_the_name_is_verified
    reactor do
      client = http(server(tls: true).port, **tls)
      client.ipaddr = "127.0.0.1"

      assert_equal("GET 1 0", client.get("/").body)
      stranger = Net::HTTP.new("localhost.localdomain", client.port)
      stranger.ipaddr = "127.0.0.1"
      tls.each { |name, value| stranger.public_send("#{name}=", value) }

      assert_raises(OpenSSL::SSL::SSLError) { stranger.get("/") }
    end
  end

  def test_open_timeout
    reactor do
      port = silent_port
      assert_times_out(0.2, Net::OpenTimeout) { http(port, open_timeout: 0.2).get("/") }
      # The handshake counts, too.
      port = mute_port
      assert_times_out(0.2, Net::OpenTimeout) { http(port, open_timeout: 0.2, **tls).get("/") }
    end
  end

  def test_read_timeout
    reactor do
      [[server, {}], [server(tls: true), tls]].each do |one, options|
        http(one.port, read_timeout: 0.2, **options).start do |client|
          assert_times_out(0.2, Net::ReadTimeout) { client.get("/sleep/50") }

          assert_equal("POST 1 3", client.post("/", "abc", text).body, "not on a new connection")
        end
      end
    end
  end

  def test_write_timeout
    reactor do
      port = mute_port
      assert_times_out(0.2, Net::WriteTimeout) { http(port, write_timeout: 0.2).post("/", "x" * 20_000_000, text) }
    end
  end

  # Net::HTTP takes no notice of it, in plain Ruby as well: the next request would read the late answer.
  def test_timeout_around
    reactor do
      http(server.port).start do |client|
        assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { client.get("/sleep/50") } }
        client.finish
        client.start

        assert_equal("POST 1 3", client.post("/", "abc", text).body)
      end
    end
  end

  def test_cancel
    one = server
    assert_cancels { http(one.port).get("/sleep/50") }
    one = server(tls: true)
    assert_cancels { http(one.port, **tls).get("/sleep/50") }
  end
end
