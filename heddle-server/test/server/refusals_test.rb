# frozen_string_literal: true

# bin/test: takes 10 s, 0.3 of a core

require_relative "../test_helper"
require "support/rack_server"

# What Heddle::Server refuses, and that nobody else is held up by it.
contract "ServerRefusals" do
  include TestSupport::RackServer

  # A request, and its status. The server closes the connection.
  unless defined?(REFUSED)
    REFUSED = {
      "no request" => ["\x16\x03\x01\x02", 400],
      "no version" => ["GET /", 400],
      "another protocol" => ["GET / HTTPS/1.1\r\nhost: a", 400],
      "a version that is not known" => ["GET / HTTP/2.0\r\nhost: a", 505],
      "a method that is no token" => ["G[T / HTTP/1.1\r\nhost: a", 400],
      "a space before the colon of a header" => ["GET / HTTP/1.1\r\nhost : a", 400],
      "a header without a colon" => ["GET / HTTP/1.1\r\nhost: a\r\nbad", 400],
      "a header that goes on in the next line" => ["GET / HTTP/1.1\r\nhost: a\r\nx: 1\r\n 2", 400],
      "a header with a NUL" => ["GET / HTTP/1.1\r\nhost: a\r\nx: a\0b", 400],
      "a header with a line feed" => ["GET / HTTP/1.1\r\nhost: a\r\nx: a\nb: c", 400],
      "a header with a carriage return" => ["GET / HTTP/1.1\r\nhost: a\r\nx: a\rb", 400],
      "a name with a space" => ["GET / HTTP/1.1\r\nhost: a\r\nx y: 1", 400],
      "no name" => ["GET / HTTP/1.1\r\nhost: a\r\n: 1", 400],
      "a first header that goes on from the line before" => ["GET / HTTP/1.1\r\n host: a", 400],
      "lines that end with a line feed only" => ["GET / HTTP/1.1\nhost: a\n", 400],
      "a request in one line" => ["GET / HTTP/1.1\nhost: a", 400],
      "no host" => ["GET / HTTP/1.1\r\nx: a", 400],
      "two hosts" => ["GET / HTTP/1.1\r\nhost: a\r\nhost: b", 400],
      "a host that is none" => ["GET / HTTP/1.1\r\nhost: a/b", 400],
      "a target that is none" => ["GET a HTTP/1.1\r\nhost: a", 400],
      "a target with a fragment" => ["GET /a#b HTTP/1.1\r\nhost: a", 400],
      "a target with a control character" => ["GET /\x01 HTTP/1.1\r\nhost: a", 400],
      "a proxy's request" => ["CONNECT a:80 HTTP/1.1\r\nhost: a", 501],
      "a length that is no number" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1x", 400],
      "a negative length" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1", 400],
      "a signed length" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +1", 400],
      "two lengths" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2", 400],
      "a list of lengths" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1, 1", 400],
      "a length and chunks" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked", 400],
      "chunks and a length" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 1", 400],
      "an encoding that does not end in chunks" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip", 400],
      "an encoding that is not known" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked", 501],
      "chunks twice" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked", 501],
      "chunks and more" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity", 400],
      "chunks and a comma" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked,", 400],
      "chunks with a tab" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding:\tchunked\r\ncontent-length: 3", 400],
      "a length with a space within" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1 1", 400],
      "a length in hex" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x1", 400],
      "a length that is empty" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length:", 400],
      "a length beyond all bounds" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: #{"9" * 100}", 413],
      "the same length twice" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 1", 400],
      "nearly chunks" => ["POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked", 400],
      "chunks in HTTP/1.0" => ["POST / HTTP/1.0\r\ntransfer-encoding: chunked", 400],
      "a long line" => ["GET /#{"a" * 9000} HTTP/1.1\r\nhost: a", 414],
      "a long header" => ["GET / HTTP/1.1\r\nhost: a\r\nx: #{"a" * 33_000}", 431],
      "large headers" => ["GET / HTTP/1.1\r\nhost: a\r\n#{Array.new(50) do |i|
        "x#{i}: #{"a" * 1000}\r\n"
      end.join}x: 1", 431],
      "many headers" => ["GET / HTTP/1.1\r\nhost: a\r\n#{Array.new(100) { |i| "x#{i}: a\r\n" }.join}x: 1", 431],
      "a body that is too large" => ["POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1001", 413]
    }.freeze
  end

  REFUSED.each do |what, (request, status)|
    define_method("test_#{what.tr(" /'.", "_")}") do
      called = false
      serve(limits: { body_size: 1000 }) { (called = true) && text }
      other = connect
      socket = connect
      socket.write("#{request}\r\n\r\n")
      answer = answer(socket)

      assert_equal([status, "close"], [answer.status, answer.headers["connection"]])
      assert_closed(socket)
      refute(called, "the application was called")
      assert_equal(200, get("/", other).status)
      assert_empty(@errors)
    end
  end

  # Refusals that the application meets when it reads.
  unless defined?(BODIES)
    BODIES = {
      "a chunk without a size" => ["x\r\n", 400],
      "a chunk with a prefix" => ["0x3\r\nabc\r\n0\r\n\r\n", 400],
      "a chunk with a space" => [" 3\r\nabc\r\n0\r\n\r\n", 400],
      "a chunk with an underscore" => ["1_0\r\n#{"a" * 16}\r\n0\r\n\r\n", 400],
      "a chunk whose line ends with a line feed only" => ["3\nabc\n0\n\n#{" " * 9000}", 400],
      "a chunk that is larger than any" => ["#{"f" * 40}\r\nabc", 413],
      "a chunk with a long extension" => ["3;#{"a" * 9000}\r\nabc\r\n0\r\n\r\n", 400],
      "a chunk with a line feed in its extension" => ["3;a\nb\r\nabc\r\n0\r\n\r\n", 400],
      "chunks without an end" => ["3\r\nabcdef\r\n0\r\n\r\n", 400],
      "trailers that are too large" => ["3\r\nabc\r\n0\r\n#{"server-timing: #{"a" * 4000}\r\n" * 10}\r\n", 431],
      "a trailer that is none" => ["3\r\nabc\r\n0\r\nbad\r\n\r\n", 400],
      "a chunk with a sign" => ["+3\r\nabc\r\n", 400],
      "a chunk that is longer than it says" => ["3\r\nabcd\r\n", 400],
      "chunks that are too large" => ["3e8\r\n#{"a" * 1000}\r\n1\r\na\r\n0\r\n\r\n", 413]
    }.freeze
  end

  BODIES.each do |what, (body, status)|
    define_method("test_#{what.tr(" ", "_")}") do
      serve(limits: { body_size: 1000 }) { |env| text(200, env["rack.input"].read) }
      socket = connect

      assert_equal(status, ask(socket, "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked", body).status)
      assert_closed(socket)
      assert_empty(@errors)
    end
  end

  # (The client waits for its answer, and sends nothing more.)
  def test_a_bare_line_feed_is_refused_at_once
    serve(limits: { head_time: 2, stall: 2 }) { |env| text(200, env["rack.input"].read) }
    ["GET / HTTP/1.1\nhost: a\n\n", "\nGET / HTTP/1.1\r\nhost: a\r\n", "GET / HTTP/1.1\r\nhost: a\nx: b",
     "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\nabc\n0\n\n"].each do |request|
      socket = connect
      socket.write(request)

      assert_equal(400, answer(socket).status, request)
      assert_closed(socket)
    end
  end

  def test_a_refusal_of_head_has_no_body
    serve(lint: false, limits: { headers: 2 }) { |env| env["PATH_INFO"] == "/" ? text : [200, { "a" => "b\0" }, []] }
    { "/ HTTP/1.1\nhost: a\nb: c\nd: e" => 431, "/500 HTTP/1.1\nhost: a" => 500, "/ HTTP/1.1" => 400 }
      .each do |request, status|
        socket = connect
        socket.write("HEAD #{request}\n\n".gsub("\n", "\r\n"))
        answer = answer(socket, head: true)

        assert_equal([status, true], [answer.status, answer.headers["content-length"].to_i.positive?])
        assert_closed(socket)
      end
  end

  def test_a_refusal_holds_also_where_the_application_rescues_everything
    serve(limits: { body_size: 10 }) do |env|
      env["rack.input"].read
    rescue StandardError
      text
    end

    assert_equal(413,
                 ask(connect, "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked", "b\r\n#{"a" * 11}\r\n").status)
  end

  def test_a_head_that_comes_too_slowly
    serve(limits: { head_time: 0.3 }) { text }
    socket = connect
    other = connect
    slow = Thread.new do
      "GET / HTTP/1.1\r\nhost: a\r\nx: ".each_char { |char| socket.write(char) }
      loop do
        socket.write("a")
        sleep(0.05)
      end
    rescue SystemCallError, IOError
      nil
    end

    assert_equal(200, get("/", other).status)
    assert_equal(408, answer(socket).status)
  ensure
    slow&.kill&.join
  end

  def test_a_body_that_does_not_come
    serve(limits: { stall: 0.2 }) { |env| text(200, env["rack.input"].read) }
    socket = connect

    assert_equal(408, ask(socket, "POST / HTTP/1.1\nhost: a\ncontent-length: 3", "ab").status)
    assert_closed(socket)
    assert_empty(@errors)
  end

  # It is no error of the application.
  def test_a_body_that_ends_too_early
    serve { |env| text(200, env["rack.input"].read) }
    { "content-length: 3" => "ab", "transfer-encoding: chunked" => "3\r\nab" }.each do |header, body|
      socket = connect
      socket.write("POST / HTTP/1.1\r\nhost: a\r\n#{header}\r\n\r\n#{body}")
      socket.close_write

      assert_equal(400, answer(socket).status)
      reset = connect
      reset.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
      reset.write("POST / HTTP/1.1\r\nhost: a\r\n#{header}\r\n\r\n#{body}")
      sleep(0.1) # until it is read
      reset.close
    end
    stop_server

    assert_empty(@errors)
  end

  def test_a_client_that_does_not_read
    closed = Thread::Queue.new
    body = Class.new do
      define_method(:each) { |&block| loop { block.call("a" * 100_000) } }
      define_method(:close) { closed << true }
    end
    serve(limits: { stall: 0.2 }) { [200, {}, body.new] }
    connect.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert(closed.pop(timeout: 30), "it was waited for")
    assert_empty(@errors)
  end

  def test_an_idle_connection
    serve(limits: { idle: 0.3 }) { text }
    said_something = connect
    get("/", said_something)

    [connect, said_something].each { |socket| assert_closed(socket) }
  end

  def test_too_many_connections
    serve_behind_gate(limits: { connections: 2 })
    sockets = Array.new(2) { connect }
    sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    wait_for_begun(2)
    third = connect
    answer = answer(third)

    assert_equal([503, "1"], [answer.status, answer.headers["retry-after"]])
    assert_closed(third)
    open_gate

    sockets.each { |socket| assert_equal(200, answer(socket).status) }
  end

  # To close the connection while the request is on its way would reset it.
  def test_a_client_that_is_turned_away_amid_its_request
    serve_behind_gate(limits: { connections: 1 })
    connect.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_for_begun
    late = connect
    late.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\n")
    late.wait_readable
    "abcdef".each_char { |char| late.write(char) && sleep(0.05) }

    assert_equal(503, answer(late).status)
    assert_equal("", late.read)
    open_gate
  end

  def test_a_crowd_that_is_turned_away
    serve_behind_gate(limits: { connections: 1 })
    first = connect
    first.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_for_begun
    crowd = Array.new(100) { connect }

    crowd.each { |socket| assert_equal(503, answer(socket).status) }
    crowd.last(30).each { |socket| assert_closed(socket) } # the server lingers for none of them
    open_gate

    assert_equal(200, answer(first).status)
    assert_equal(200, get("/more", first).status)
  end

  # An idle one makes room for a new one.
  def test_too_many_connections_of_which_one_is_idle
    serve(limits: { connections: 2 }) { text }
    idle = Array.new(2) { connect.tap { |socket| get("/", socket) } }
    wait_until("they are idle") { tasks_of_connections.zero? }

    assert_equal(200, get("/", connect).status)
    assert_closed(idle.first)
    assert_equal(200, get("/", idle.last).status)
  end

  def test_too_many_requests
    serve_behind_gate(limits: { requests: 2 })
    sockets = Array.new(3) { connect }
    sockets.first(2).each do |socket|
      socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      wait_for_begun
    end

    assert_equal(503, get("/", sockets.last).status)
    open_gate

    assert_equal([200, 200], sockets.first(2).map { |socket| answer(socket).status })
  end

  def test_limits_are_checked
    require "heddle/server"
    { idle: 0, headers: -1, body_size: "x", unknown: 1 }.each do |name, value|
      error = assert_raises(ArgumentError) { Heddle::Server.new(-> {}, limits: { name => value }) }

      assert_match(name.to_s, error.message)
    end
  end
end
