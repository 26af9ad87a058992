# frozen_string_literal: true

require_relative "../test_helper"
require "support/examples"

contract "ServerSentEventsExample" do
  include TestSupport::Examples

  def setup
    super
    @program = start_example("server_sent_events", 0, 0.05)
    @port = Integer(heard(@program, %r{http://127\.0\.0\.1:(\d+)/})[1])
  end

  def get(path) = keep(TCPSocket.new("127.0.0.1", @port)).tap { |socket| socket.write("GET #{path} HTTP/1.1\r\n\r\n") }

  def listen
    get("/events").tap { |socket| assert_match(%r{^Content-Type: text/event-stream\r$}, socket.gets("\r\n\r\n")) }
  end

  def assert_event(text) = assert_match(/\Adata: \d+\.\d\d\n\n\z/, text)

  def test_sends_each_event_to_all_clients
    clients = Array.new(50) { listen }
    events = clients.map { |client| Array.new(3) { client.gets("\n\n") } }

    events.flatten.each { |event| assert_event(event) }
  end

  def test_a_client_that_goes_disturbs_nobody
    listen.close
    reset = listen
    reset.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
    reset.close
    client = listen

    10.times { assert_event(client.gets("\n\n")) }
  end

  def test_a_page_and_what_is_not_there
    assert_match(%r{\AHTTP/1\.1 200 OK\r\n.*new EventSource\("/events"\)}m, get("/").read)
    assert_match(%r{\AHTTP/1\.1 404 }, get("/nothing").read)
  end

  def test_ctrl_c
    client = listen
    client.gets("\n\n")
    @program.signal(:INT)

    assert_predicate(ended(@program), :success?)
    assert_includes(@program.err, "ended by Ctrl-C\n")
    assert_match(/\A(?:data: \d+\.\d\d\n\n)*\z/, client.read)
  end
end
