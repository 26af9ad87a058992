# frozen_string_literal: true

# bin/test: takes 14 s, 0.4 of a core

require_relative "../../test_helper"
require "support/certificate"
require "support/clients/http_matrix"
require "support/http_server"
require "support/io/shared_io"

# Net::HTTP by name, plain and with TLS.
contract "NetHttp" do
  extend TestSupport::Clients

  client "net-http", file: "net/http", own: true

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
        assert_overlaps(50, one) do
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

# A connection that is kept, which takes no notice of a Timeout or a cancel: the remedy is #finish.
http_contracts "NetHttp", "net-http", file: "net/http", own: true do
  include TestSupport::ClientMatrix::WrongAfterACancel
  include TestSupport::SharedIO

  def name_in_table = "Net::HTTP"
  def timeout_errors = [Net::ReadTimeout]
  def mend(client) = client.finish.then { client.start }
  def ask(client, number, seconds) = Integer(client.get(path(number, seconds)).body)
  def close_client(client) = client.finish

  def open_client(timeout:)
    Net::HTTP.start(host, port, use_ssl: tls?, cert_store: (cert_store if tls?), read_timeout: timeout, max_retries: 0)
  end

  def test_parts
    reactor do
      client = open_client(timeout: 10)
      parts = []
      assert_others_run do
        client.request_get("/parts?seconds=0.1") { |response| response.read_body { |part| parts << part } }
      end

      assert_equal(%W[one\n two\n three\n], parts)
    ensure
      client&.finish
    end
  end

  # The body of the request comes bit by bit from a pipe, and the answer is read bit by bit.
  def test_upload
    reactor do
      sizes, = all_at_once(5) { |number| upload(number * 200_000) }

      assert_equal(Array.new(5) { |number| number * 200_000 }, sizes)
    end
  end

  def upload(size)
    from, to = pipe
    writer = go { to.write("x" * size).then { to.close } }
    request = Net::HTTP::Post.new("/echo", "Transfer-Encoding" => "chunked", "Content-Type" => "text/plain")
    request.body_stream = from
    client = open_client(timeout: 10)
    got = 0
    client.request(request) { |response| response.read_body { |part| got += part.size } }
    writer.value
    got
  ensure
    client&.finish
  end

  def test_tasks_share_one
    heddle_only("it is about tasks")
    shared = Heddle.run { open_client(timeout: 10) }
    assert_warns("net-http: a Net::HTTP that was started must not be shared") { |number| ask(shared, number, 0.3) }
  ensure
    shared&.finish
  end
end
