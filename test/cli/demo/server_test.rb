# frozen_string_literal: true

require_relative "../../test_helper"
require "heddle/cli/demo/server"

# The demo's HTTP server, in a thread of the test.
class DemoServerTest < HeddleTest
  Server = Heddle::CLI::Demo::Server

  def setup
    lifeline, @lifeline = pipe
    @server = Server.new(lifeline:)
    @thread = Thread.new { @server.serve }
  end

  def teardown
    @lifeline.close
    @thread.join(60) || flunk("the server outlived its lifeline")
  ensure
    @server.instance_variable_get(:@listener).close
  end

  def connect
    keep(TCPSocket.new("127.0.0.1", @server.port))
  end

  def request(path)
    "GET #{path} HTTP/1.1\r\nHost: x\r\n\r\n"
  end

  def ask(path)
    connect.tap { |socket| socket.write(request(path)) }
  end

  def test_answers
    head, body = ask("/delay/0/7").read.split("\r\n\r\n", 2)

    assert_equal(Server.body(0, 7), body)
    assert_match(%r{\AHTTP/1\.1 200 OK\r\n}, head)
    assert_match(/^Content-Length: #{body.bytesize}\r?$/, head)
  end

  def test_answers_after_the_delay
    took = elapsed { assert_includes(ask("/delay/200/1").read, Server.body(200, 1)) }

    assert_includes(0.2..20.0, took)
  end

  def test_delays_overlap
    took = elapsed do
      sockets = Array.new(100) { |number| ask("/delay/#{number.even? ? 300 : 200}/#{number}") }

      sockets.each_with_index do |socket, number|
        assert_operator(socket.read, :end_with?, Server.body(number.even? ? 300 : 200, number))
      end
    end

    assert_includes(0.3..20.0, took)
  end

  def test_a_request_in_pieces
    socket = connect
    request("/delay/0/3").each_char.each_slice(7) do |piece|
      socket.write(piece.join)
      sleep(0.005)
    end

    assert_operator(socket.read, :end_with?, Server.body(0, 3))
  end

  def test_a_silent_client_disturbs_nobody
    silent = connect
    silent.write("GET ")

    assert_operator(ask("/delay/0/1").read, :end_with?, Server.body(0, 1))
    silent.close

    assert_operator(ask("/delay/0/2").read, :end_with?, Server.body(0, 2))
  end

  def test_a_client_that_leaves_disturbs_nobody
    10.times { ask("/delay/50/1").close }
    sleep(0.1)

    assert_operator(ask("/delay/0/2").read, :end_with?, Server.body(0, 2))
  end

  def test_anything_else_is_not_found
    ["/", "/delay/x/1", "/delay/1"].each { |path| assert_operator(ask(path).read, :start_with?, "HTTP/1.1 404 ") }
  end

  def test_a_request_without_end_is_dropped
    socket = connect
    begin
      20.times { socket.write("x" * 1000) && sleep(0.002) }
      read = socket.read
    rescue SystemCallError
      read = ""
    end

    assert_empty(read)
  end
end
