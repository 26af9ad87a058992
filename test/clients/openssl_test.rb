# frozen_string_literal: true

require_relative "../test_helper"
require "support/certificate"
require "support/clients"
require "support/http_server"

# OpenSSL::SSL::SSLSocket.open, by name.
contract "OpenSslByName" do
  extend TestSupport::Clients

  client "openssl", own: true

  def server = keep(TestSupport::HttpServer.new(tls: true))

  def open_ssl(port)
    OpenSSL::SSL::SSLSocket.open(host, port, context: TestSupport::Certificate.client_context).tap do |socket|
      keep(socket).sync_close = true
      socket.hostname = "localhost"
      yield(socket) if block_given?
      socket.connect
      socket.post_connection_check("localhost")
    end
  end

  def get(socket, path = "/")
    socket.write("GET #{path} HTTP/1.1\r\n\r\n")
    nil until socket.gets == "\r\n"
    socket.read(7)
  end

  def test_fifty_tasks_at_the_same_time
    reactor do
      one = server
      values = nil
      assert_overlaps(50, one) { values, = all_at_once(50) { get(open_ssl(one.port), "/sleep/0.3") } }

      assert_equal(["GET 1 0"], values.uniq)
    end
  end

  def test_io_timeout
    reactor do
      socket = open_ssl(server.port)
      socket.to_io.timeout = 0.2
      assert_times_out(0.2, IO::TimeoutError) { get(socket, "/sleep/0.6") }
      socket.to_io.timeout = 20

      assert_match(/200 OK/, socket.gets)
    end
  end

  def test_io_timeout_in_the_handshake
    reactor do
      port = mute_port
      assert_times_out(0.2, IO::TimeoutError) { open_ssl(port) { |socket| socket.to_io.timeout = 0.2 } }
    end
  end

  def test_cancel
    port = mute_port
    assert_cancels { open_ssl(port) }
    one = server
    assert_cancels { get(open_ssl(one.port), "/sleep/50") }
  end
end
