# frozen_string_literal: true

# bin/test: takes 4 s, 0.5 of a core

require_relative "../test_helper"
require "support/certificate"
require "support/http2_client"
require "support/rack_server"

# What fails when a part of the answer was sent, or all of it.
contract "ServerLateFailures" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  # An answer that ends with the connection, of a body that fails in its midst.
  def cut_off_answer(socket)
    socket.write("GET / HTTP/1.0\r\n\r\n")

    assert_match(/\AHTTP.1.0 200 /, socket.gets("\r\n\r\n"))
    assert_equal("part", socket.read(4))
    assert_raises(Errno::ECONNRESET) { socket.read }
  end

  def test_an_answer_that_ends_with_the_connection_and_is_cut_off
    serve { [200, {}, ->(stream) { stream.write("part") && raise("in its midst") }] }
    cut_off_answer(connect)

    assert_equal("in its midst", @errors.pop.message)
  end

  # (The body tells when its part is sent: a thread that waited for the client's socket might see nothing, for the test
  # reads from it meanwhile.)
  def test_an_answer_that_ends_with_the_connection_and_takes_too_long
    sent = Thread::Queue.new
    serve { [200, {}, Enumerator.new { |out| (out << "part") && (sent << true) && sleep }] }
    stop = Thread.new { sent.pop && stop_server(grace: 0.1) }
    cut_off_answer(connect)
    stop.join
  end

  def test_an_answer_that_is_cut_off_over_tls
    serve(bind: tls_address) { [200, {}, Enumerator.new { |out| (out << "part") && raise("in its midst") }] }
    ssl = OpenSSL::SSL::SSLSocket.new(connect, TestSupport::Certificate.client_context)
    ssl.hostname = "localhost"
    ssl.connect
    cut_off_answer(ssl)
  end

  # A write that a timeout ends was sent in part: nothing of what the application says then may follow, and no other
  # answer. Whether it rescues that, and goes on, or not.
  def test_a_write_that_is_interrupted
    interrupted_writes("a" * 8_000_000) do |big, body|
      { "chunks" => {}, "a length" => { "content-length" => big.bytesize.to_s } }.each do |how, headers|
        serve(lint: false) { [200, headers, Enumerator.new { |out| body.call(->(part) { out << part }) }] }
        socket = connect
        socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 2)

        assert(@over.pop(timeout: 60), "the write goes on")
        sent = read_all(socket)

        assert_match(/\AHTTP.1.1 200 .*\r\n\r\n(7a1200\r\n)?a+\z/m, sent.squeeze("a"), how)
        assert_operator(sent.bytesize, :<, big.bytesize)
        stop_server
      end
    end
  end

  def test_a_write_to_a_stream_that_is_interrupted
    interrupted_writes("a" * 2000) do |big, body|
      [{}, { "content-length" => big.bytesize.to_s }].each do |headers|
        serve(lint: false) { [200, headers, Enumerator.new { |out| body.call(->(part) { out << part }) }] }
        session = http2(settings: { 4 => 1000 }) # (bytes that a stream may send)
        reply = session.get

        assert_equal(["a" * 1000, Protocol::HTTP2::INTERNAL_ERROR], [reply.body, reply.reset])
        stop_server
      end
    end
  end

  # @yieldparam big [String] what the client does not take in time
  # @yieldparam body [Proc] writes it by the Proc that it gets: fails, rescues that and goes on, rescues that and ends
  def interrupted_writes(big)
    @over = Thread::Queue.new
    late = lambda do |out|
      Heddle.timeout(0.2) { out.call(big) }
    ensure
      @over << true
    end
    yield big, late
    yield big, ->(out) { rescued(late, out) && out.call("more") }
    yield big, ->(out) { rescued(late, out) }
  end

  def rescued(late, out)
    late.call(out)
  rescue Heddle::TimeoutError
    true
  end

  def read_all(socket)
    all = +""
    socket.timeout = 10
    loop { all << socket.readpartial(100_000) }
  rescue EOFError, Errno::ECONNRESET
    all
  end

  def test_a_refusal_in_place_of_an_answer_of_which_nothing_was_sent
    body = Class.new(Protocol::HTTP::Body::Readable) do
      def ready? = true
      def read = raise("before it")
    end
    serve(lint: false) { [200, {}, body.new] }
    answer = ask(connect, "GET / HTTP/1.0")

    assert_equal([500, "Internal Server Error"], [answer.status, answer.body])
  end

  def test_a_body_whose_close_fails_is_closed_once
    closed = 0
    body = Class.new do
      def each = nil
      define_method(:close) { (closed += 1) && raise("at its end") }
    end
    serve(lint: false) { |env| [Integer(env["QUERY_STRING"]), {}, body.new] }
    session = http2
    requests = %w[GET HEAD].product([200, 204, 304])
    requests.each do |method, status|
      socket = connect
      socket.write("#{method} /?#{status} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")

      assert_match(/\AHTTP.1.1 #{status} /, socket.read)
      assert_equal(status, session.get("/?#{status}", method:).status)
    end
    stop_server

    assert_equal([requests.size * 2] * 2, [closed, @errors.size])
  end

  def test_a_task_that_fails_behind_the_answer
    serve do
      Heddle.spawn { sleep(0.05) && raise("behind it") }
      text
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 2)
    session = http2

    assert_equal(%w[hello hello], Array.new(2) { answer(socket).body }, "the next request of the connection is served")
    assert_equal(%w[hello hello], Array.new(2) { session.get.body })
    assert_equal(["behind it"] * 4, Array.new(4) { @errors.pop.message })
  end

  # (Over HTTP/1 the connection ends then.)
  def test_a_body_that_fails_when_all_of_it_was_sent
    serve do |env|
      [200, { "content-length" => "3" }, Enumerator.new do |out|
        out << "abc"
        env["PATH_INFO"] == "/more" ? out << "d" : raise("behind it")
      end]
    end
    session = http2
    %w[/ /more].each do |path|
      id = session.request(path, open: true)
      reply = session.reply(id)
      session.wait_for(:reset)

      assert_equal([200, "abc", Protocol::HTTP2::NO_ERROR], reply.to_a.values_at(0, 2, 4))
      assert_equal([200, "abc", nil], session.get(path).to_a.values_at(0, 2, 4))
      assert_match(/behind it|content-length was 3/, @errors.pop.message)
      assert_match(/behind it|content-length was 3/, @errors.pop(timeout: 20)&.message.to_s)
    end
  end

  def test_a_task_of_a_request_that_was_hijacked
    go_on = Thread::Queue.new
    serve(lint: false) do |env|
      io = env["rack.hijack"].call
      Thread.new { go_on.pop && io.write("still there") && io.close }
      Heddle.spawn { sleep(0.01) && raise("behind it") }
      [200, {}, []]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal("behind it", @errors.pop.message)
    go_on << true

    assert_equal("still there", socket.read)
  end

  # A task reads the body of the request while the answer is sent. What it gets is no body.
  def serve_and_read_late(wait_for, body)
    serve(lint: false, limits: { stall: 0.2 }) do |env|
      Heddle.spawn { wait_for.pop && env["rack.input"].read }
      [200, { "content-length" => "1000" }, body]
    end
  end

  def test_a_refusal_is_no_part_of_an_answer
    go_on = Thread::Queue.new
    serve_and_read_late(go_on, Enumerator.new { |out| (out << "begin") && (go_on << true) && sleep })
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nbad")

    assert_match(/\AHTTP.1.1 200 /, socket.gets("\r\n\r\n"))
    assert_equal("begin", socket.read)
    session = http2
    reply = session.reply(session.request(open: true))

    assert_equal(["begin", Protocol::HTTP2::CANCEL], [reply.body, reply.reset])
    assert_empty(@errors)
  end

  def test_a_refusal_is_no_second_answer
    go_on = Thread::Queue.new
    serve_and_read_late(go_on, ["a" * 1000])
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab")

    assert_equal(1000, answer(socket).body.bytesize)
    go_on << true

    assert_closed(socket)
    session = http2
    id = session.request(open: true)

    assert_equal(1000, session.reply(id).body.bytesize)
    go_on << true
    session.wait_for(:reset)

    assert_equal(Protocol::HTTP2::NO_ERROR, session.reply(id).reset)
    assert_empty(@errors)
  end

  def test_a_client_that_goes_while_a_streaming_body_reads_from_it
    ended = Thread::Queue.new
    serve do
      [200, {}, lambda do |stream|
        stream.write(stream.read(3))
        stream.read(3)
      ensure
        ended << true
      end]
    end
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabc")
    socket.gets("abc")
    socket.close
    ended.pop
    stop_server

    assert_empty(@errors, "it is no error of the application")
  end

  def test_the_end_of_a_server_whose_requests_take_too_long_is_no_error
    started = Thread::Queue.new
    serve { (started << true) && sleep }
    connect.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    started.pop
    stop_server(grace: 0.1)

    assert_empty(@errors)
  end
end
