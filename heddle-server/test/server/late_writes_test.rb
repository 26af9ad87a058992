# frozen_string_literal: true

# bin/test: takes 4 s, 0.5 of a core

require_relative "../test_helper"
require "support/http2_client"
require "support/rack_server"

# The application hands its answer to a task or to a thread, or writes to an answer that has ended. No byte of one
# answer stands in front of another.
contract "ServerLateWrites" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  # How something is done elsewhere.
  unless defined?(ELSEWHERE)
    ELSEWHERE = { "thread" => ->(work) { Thread.new(&work) }, "task" => ->(work) { Heddle.spawn(&work) },
                  "background" => ->(work) { Heddle.spawn(background: true, &work) } }.freeze
    UPGRADE = "GET /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n"
  end

  # The answer is written when the test says so, and the call has returned.
  # @return [Proc] for an application
  def later(elsewhere, go_on, &write)
    lambda do |stream|
      elsewhere.call(lambda do
        go_on.pop
        write.call(stream)
      ensure
        stream.close
      end)
    end
  end

  def test_a_stream_that_is_handed_on_ends_when_it_is_closed
    ELSEWHERE.each do |name, elsewhere|
      go_on = Thread::Queue.new
      body = later(elsewhere, go_on) { |stream| stream.write("late ", name) }
      serve(lint: false) do |env|
        case env["PATH_INFO"]
        when "/stream" then [200, {}, body]
        when "/hijack" then [200, { "rack.hijack" => body }, []]
        else text(200, "second")
        end
      end
      %w[/stream /hijack].each do |path|
        socket = connect
        socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n")
        session = http2
        id = session.request(path)

        assert_equal("second", session.get.body)
        2.times { go_on << true }

        assert_equal(["late #{name}", "second"], Array.new(2) { answer(socket).body })
        assert_equal(["late #{name}", nil], session.reply(id).to_a.values_at(2, 4))
      end
      stop_server
    end
  end

  def test_a_stream_of_several_writers
    serve(lint: false) do
      [200, {}, lambda do |stream|
        Thread.new do
          writers = Array.new(4) { |i| Thread.new { 50.times { stream.write(i.to_s * 100, "\n") } } }
          writers.each(&:join)
          stream.close
        end
        50.times { stream.write("#{"x" * 40_000}\n") }
      end]
    end
    session = http2(settings: { 4 => (1 << 31) - 1 })
    session.send_frame(:window, 0, 0, [(1 << 31) - 1 - 65_535].pack("N"))

    [get.body, session.get.body].each do |body|
      parts = body.scan(/\d+|x+/)

      assert_equal([200 * 100, 50], [parts.grep(/\d/).sum(&:size), parts.grep(/\Ax{40000}\z/).size])
    end
  end

  def test_an_upgraded_connection_that_is_handed_on
    go_on = Thread::Queue.new
    body = later(ELSEWHERE["thread"], go_on) { |stream| stream.write(stream.readpartial(10).reverse) }
    serve(lint: false) do |env|
      if env["QUERY_STRING"].empty?
        [101, { "rack.protocol" => "echo" }, body]
      else
        [101, { "upgrade" => "echo", "connection" => "upgrade", "rack.hijack" => body }, []]
      end
    end
    [UPGRADE, UPGRADE.sub("/upgrade", "/upgrade?hijack")].each do |request|
      socket = connect
      socket.write(request)

      assert_match(/ 101 /, socket.gets("\r\n\r\n"))
      socket.write("hello")
      go_on << true

      assert_equal("olleh", socket.read)
    end
  end

  # The stream of an answer, and the block that each was called with, outlive it here.
  def serve_what_stays(seen)
    each = Class.new { define_method(:each) { |&block| [block.call("first"), seen << block] } }
    serve(lint: false) do |env|
      case env["PATH_INFO"]
      when "/stream" then [200, {}, ->(io) { [io.write("first"), io.close_write, seen << io.method(:write)] }]
      when "/closed" then [200, {}, ->(io) { [io.write("first"), io.close, seen << io.method(:<<)] }]
      when "/chunks" then [200, {}, each.new]
      when "/length" then [200, { "content-length" => "5" }, each.new]
      when "/hints"
        request = env["protocol.http.request"]
        (seen << ->(_) { request.send_interim_response(103, { "link" => "late" }) }) && text(200, "first")
      when "/take" then (seen << ->(_) { env["rack.hijack"].call.write("late") }) && text(200, "first")
      else text(200, "second")
      end
    end
  end

  def test_a_write_to_an_answer_that_has_ended_raises
    seen = Thread::Queue.new
    serve_what_stays(seen)
    %w[/stream /closed /chunks /length /hints].each do |path|
      socket = connect
      session = http2

      assert_equal(%w[first first], [get(path, socket).body, session.get(path).body], path)
      2.times { assert_raises(IOError, path) { (seen.pop(timeout: 10) || flunk(path)).call("late") } }
      assert_equal(%w[second second], [get("/", socket).body, session.get.body], path)
      assert_nil(socket.wait_readable(0.01))
    end
    socket = connect
    get("/take", socket)

    assert_raises(IOError) { seen.pop.call("late") }
    assert_equal("second", get("/", socket).body)
  end

  def hijacked(text, **headers)
    [200, { **headers, "rack.hijack" => ->(io) { io.write(text) && io.close } }, []]
  end

  # A hijack keeps the headers that say where its answer ends.
  def test_a_hijack_that_frames_its_answer
    serve(lint: false) do |env|
      case env["PATH_INFO"]
      when "/length" then hijacked("hello", "content-length" => "5")
      when "/chunks" then hijacked("3\r\nabc\r\n0\r\n\r\n", "transfer-encoding" => "chunked")
      when "/less" then hijacked("hell", "content-length" => "5")
      when "/more" then hijacked("hello!", "content-length" => "5")
      else text
      end
    end
    socket = connect
    answer = get("/length", socket)

    assert_equal(["5", nil, "hello"], [*answer.headers.values_at("content-length", "transfer-encoding"), answer.body])
    assert_equal("hello", get("/", socket).body, "the connection goes on")
    answer = get("/chunks", socket)

    assert_equal(%w[chunked close abc], [*answer.headers.values_at("transfer-encoding", "connection"), answer.body])
    assert_closed(socket)
    reply = http2.get("/length")

    assert_equal([200, "5", "hello"], [reply.status, reply.headers["content-length"], reply.body])
    assert_equal(500, http2.get("/chunks").status)
    assert_match(/transfer-encoding/, @errors.pop.message)
    %w[/less /more].each do |path|
      socket = connect
      socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n")

      assert_equal(1, socket.read.scan("HTTP/1.1").size, "the connection ends")
      assert_match(/content-length was 5/, @errors.pop.message)
    end
  end

  # The stream is closed before the error is seen, by an ensure clause.
  def test_an_error_behind_a_close_cuts_the_answer_off
    serve(lint: false) do
      [200, {}, lambda do |stream|
        stream.write("part")
        raise "in its midst"
      ensure
        stream.close
      end]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_match(/\r\n4\r\npart\r\n\z/, socket.read)
    assert_equal(["part", Protocol::HTTP2::INTERNAL_ERROR], http2.get.to_a.values_at(2, 4))
    assert_equal(["in its midst"] * 2, Array.new(2) { @errors.pop.message })
  end

  # (That of a task as well as that of a thread.)
  def test_an_answer_ends_at_the_close_whatever_else_the_call_does
    go_on = Thread::Queue.new
    serve(lint: false) { [200, {}, ->(stream) { [stream.write("all"), stream.close, go_on.pop] }] }
    session = http2

    assert_equal(%w[all all], [get.body, session.get.body])
    2.times { go_on << true }
  end

  def test_a_client_that_leaves_an_answer_in_a_thread
    go_on = Thread::Queue.new
    raised = Thread::Queue.new
    serve(lint: false) do
      [200, {}, lambda do |stream|
        Thread.new do
          stream.write("first")
          go_on.pop
          100.times { stream.write("a" * 100_000) && sleep(0.01) }
        rescue StandardError => e
          raised << e
        end
      end]
    end
    session = http2
    id = session.request
    session.part(id, 5)
    session.send_frame(:reset, 0, id, "\0\0\0\x08")
    session.send_frame(:ping, 0, 0, "12345678")
    session.wait_for(:ping, TestSupport::HTTP2Client::ACK)
    go_on << true

    assert_kind_of(IOError, raised.pop)
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    socket.gets("first")
    socket.close
    go_on << true

    assert(raised.pop)
    wait_until("its request has ended") { @server.counts[:requests].zero? }

    assert_empty(@errors)
  end
end
