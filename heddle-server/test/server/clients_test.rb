# frozen_string_literal: true

# bin/test: takes 10 s, 0.3 of a core

require_relative "../test_helper"
require "support/http2_client"
require "support/rack_server"

# What one client may take, and what becomes of a request whose client leaves or whose application is too slow.
contract "ServerClients" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  # @return [Socket] of a client with another address
  def connect_from(address)
    Socket.tcp("127.0.0.1", @server.port, address, 0).tap { |socket| @sockets << socket }
  end

  def test_one_client_does_not_get_all_requests
    go_on = Thread::Queue.new
    running = Thread::Queue.new
    serve(limits: { requests: 4 }) { (running << true) && go_on.pop && text }
    first = Array.new(2) { connect.tap { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") } }
    session = http2
    third = session.request
    3.times { running.pop }

    assert_equal([503, 503], [get.status, session.get.status], "three of four are its part")
    other = connect_from("127.0.0.2")
    other.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    4.times { go_on << true }

    assert_equal([200] * 4, [*first.map { |socket| answer(socket).status }, session.reply(third).status,
                             answer(other).status])
    go_on.close
  end

  def test_the_part_of_one_client
    require "heddle/server/limits"
    limits = [{}, { requests: 1 }, { requests: 10 }, { requests: 10, client_requests: 10 }]

    assert_equal([1875, 1, 8, 10], limits.map { |given| Heddle::Server::Limits.new(**given).client_requests })
  end

  def test_clients_of_a_unix_socket_are_not_told_apart
    path = File.join(tempdir, "socket")
    go_on = Thread::Queue.new
    serve(bind: "unix:#{path}", limits: { requests: 4, client_requests: 1 }) { go_on.pop && text }
    sockets = Array.new(3) { UNIXSocket.new(path).tap { |socket| @sockets << socket } }
    sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    3.times { go_on << true }

    assert_equal([200] * 3, sockets.map { |socket| answer(socket).status })
  end

  # The kernel would take 2.5 MB and more of it, for each such client.
  def test_an_answer_that_nobody_reads_does_not_fill_the_kernel
    made = 0
    serve(limits: { stall: 60 }) do
      [200, {}, Enumerator.new { |out| 200.times { made += 1 and out << ("a" * 100_000) } }]
    end
    connect_slowly.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_until("the body waits for its client") do
      before = made
      sleep(0.5) && before.positive? && made == before
    end

    assert_operator(made, :<, 15)
  end

  # It takes a little, again and again, so that no write waits for long.
  def test_a_client_that_takes_its_answer_too_slowly
    ended = Thread::Queue.new
    serve(limits: { stall: 1, rate: 1_000_000 }) do |env|
      next text if env["PATH_INFO"] == "/"

      [200, {}, Enumerator.new do |out|
        loop { out << ("a" * 10_000) }
      ensure
        ended << true
      end]
    end
    socket = connect_slowly
    socket.write("GET /endless HTTP/1.1\r\nhost: a\r\n\r\n")
    reader = Thread.new do
      loop { socket.readpartial(2000) && sleep(0.02) }
    rescue SystemCallError, IOError
      nil
    end

    assert(ended.pop(timeout: 60), "it is given up")
    assert_equal(200, get.status)
    assert_empty(@errors)
  ensure
    reader&.kill&.join
  end

  def test_a_client_that_opens_its_window_too_slowly
    serve(limits: { stall: 0.5, rate: 1_000_000 }) { [200, {}, Enumerator.new { |out| loop { out << ("a" * 1000) } }] }
    session = http2(settings: { 4 => 100 })
    id = session.request
    opener = Thread.new do
      loop { session.send_frame(:window, 0, id, "\0\0\0\1") && sleep(0.05) }
    rescue SystemCallError, IOError
      nil
    end

    assert_equal(Protocol::HTTP2::CANCEL, session.reply(id).reset)
  ensure
    opener&.kill&.join
  end

  def test_a_request_that_takes_too_long
    ended = Thread::Queue.new
    serve(limits: { request_time: 0.3 }) do |env|
      case env["PATH_INFO"]
      when "/slow"
        begin
          sleep
        rescue StandardError
          text(200, "rescued")
        ensure
          ended << true
        end
      when "/stream" then [200, {}, Enumerator.new { |out| 3.times { sleep(0.2) && (out << "a") } }]
      else text
      end
    end
    session = http2
    answers = [get("/slow"), session.get("/slow")]

    assert_equal([[503, "1"]] * 2, answers.map { |one| [one.status, one.headers["retry-after"]] })
    2.times { assert(ended.pop) }
    assert_equal([Heddle::TimeoutError] * 2, Array.new(2) { @errors.pop.class })
    assert_equal(%w[aaa aaa], [get("/stream").body, session.get("/stream").body], "its beginning was in time")
  end

  # @return [Array<Symbol, String>] what became of requests whose client leaves
  def serve_waiting(ended, **options, &wait)
    serve(**options) do |env|
      next text if env["PATH_INFO"] == "/"

      ended << :begun
      wait.call(env)
      ended << :whole
      text
    rescue Heddle::Cancelled => e
      ended << e.reason
      raise
    end
  end

  # Each leaves as the request has begun.
  def leave_in_all_ways(ended)
    socket = connect
    socket.write("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal(:begun, ended.pop)
    socket.close
    yield
    session = http2
    id = session.request("/wait")

    assert_equal(:begun, ended.pop)
    session.send_frame(:reset, 0, id, "\0\0\0\x08")
    yield
    session.request("/wait")

    assert_equal(:begun, ended.pop)
    session.close
    yield
  end

  def test_a_request_is_cancelled_when_its_client_leaves_if_that_is_wanted
    ended = Thread::Queue.new
    serve_waiting(ended, cancel_disconnected: true) { sleep }

    leave_in_all_ways(ended) { assert_equal("the client has left", ended.pop(timeout: 30)) }

    assert_equal([200, 200], [get.status, http2.get.status])
    assert_empty(@errors)
  end

  def test_a_request_goes_on_when_its_client_leaves_if_nothing_else_is_wanted
    ended = Thread::Queue.new
    go_on = Thread::Queue.new
    serve_waiting(ended) { go_on.pop }
    leave_in_all_ways(ended) do
      sleep(1.2) # twice the time in which it would be seen
      go_on << true

      assert_equal(:whole, ended.pop)
    end
  end

  def test_an_application_may_ask_whether_the_client_has_left
    ended = Thread::Queue.new
    serve_waiting(ended) do |env|
      client = env["heddle.disconnected"]
      ended << [client.wait, client.wait(0), client.call]
    end

    leave_in_all_ways(ended) { assert_equal([[true] * 3, :whole], Array.new(2) { ended.pop(timeout: 30) }) }
  end

  def test_a_client_that_has_not_left
    serve { |env| text(200, env["heddle.disconnected"].then { |client| [client.call, client.wait(0.01)] }.inspect) }

    assert_equal(["[false, false]"] * 2, [get.body, http2.get.body])
  end

  def test_one_task_of_a_request_may_end_with_the_client
    ended = Thread::Queue.new
    serve_waiting(ended) do |env|
      upstream = Heddle.spawn { [env["heddle.disconnected"].cancel, sleep] }
      upstream.wait
      ended << upstream.status
    end

    leave_in_all_ways(ended) { assert_equal(%i[cancelled whole], Array.new(2) { ended.pop(timeout: 30) }) }
  end

  def test_several_tasks_of_a_request_may_end_with_the_client
    ended = Thread::Queue.new
    serve_waiting(ended) do |env|
      tasks = Array.new(2) { Heddle.spawn { [2.times { env["heddle.disconnected"].cancel }, sleep] } }
      ended << tasks.each(&:wait).map(&:status)
    end

    leave_in_all_ways(ended) { assert_equal([%i[cancelled] * 2, :whole], Array.new(2) { ended.pop(timeout: 30) }) }
  end

  def test_a_thread_of_a_request_cannot_end_with_the_client
    serve do |env|
      text(200, Thread.new { assert_raises(Heddle::Error) { env["heddle.disconnected"].cancel }.message }.value)
    end

    assert_equal("no task runs here that could be cancelled", get.body)
  end

  def test_the_end_of_the_answer_ends_the_wait_for_the_client
    heard = Thread::Queue.new
    serve do |env|
      client = env["heddle.disconnected"]
      Thread.new { heard << client.wait }
      env["PATH_INFO"] == "/nothing" ? [204, {}, []] : text
    end
    session = http2
    { "/" => 200, "/nothing" => 204 }.each do |path, status|
      assert_equal([status, status], [get(path).status, session.get(path).status])
      assert_equal([false, false], Array.new(2) { heard.pop }, path)
    end
  end

  def test_early_hints
    serve(lint: false) do |env|
      env["rack.early_hints"].call("link" => "</a>; rel=preload\n</b>; rel=preload")
      env["rack.early_hints"].call("link" => ["</c>; rel=preload"])
      text
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    hints = Array.new(2) { answer(socket, head: true) }

    assert_equal([[103, "</a>; rel=preload, </b>; rel=preload"], [103, "</c>; rel=preload"]],
                 hints.map { |one| [one.status, one.headers["link"]] })
    assert_equal(200, answer(socket).status)
    reply = http2.get

    assert_equal([[103, 103], 200], [reply.interim, reply.status])
    assert_equal(200, get("/", headers: "\nx-forwarded-for: 1.2.3.4").status, "a proxy may take it for the answer")
    assert_equal(200, ask(connect, "GET / HTTP/1.0").status)
  end

  def test_a_hijacked_connection_as_libraries_of_rack_2_take_it
    serve(lint: false) do |env|
      env["rack.hijack"].call
      env["rack.hijack_io"].then { |io| io.write("taken") && io.close }
      [-1, {}, []]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal("taken", socket.read)
  end

  def test_a_dump_names_requests_and_clients
    go_on = Thread::Queue.new
    running = Thread::Queue.new
    serve { (running << true) && go_on.pop && text }
    socket = connect
    socket.write("GET /old?a=b HTTP/1.1\r\nhost: a\r\n\r\n")
    session = http2
    id = session.request("/new")
    silent = connect
    2.times { running.pop }
    wait_until("it is accepted") { @server.counts[:busy] == 3 }
    clients = [socket, session.io, silent].map { |one| "127.0.0.1:#{one.local_address.ip_port}" }
    _, dump = capture_io { Heddle.dump }

    ["GET /old?a=b of #{clients[0]}", "GET /new of #{clients[1]}", "connection of #{clients[1]}",
     "connection of #{clients[2]}"].each { |name| assert_includes(dump, "task #{name.inspect}") }
    2.times { go_on << true }

    assert_equal([200, 200], [answer(socket).status, session.reply(id).status])
  end
end
