# frozen_string_literal: true

# bin/test: takes 10 s, 0.3 of a core

require_relative "../test_helper"
require "net/http"
require "support/certificate"
require "support/rack_server"

# Where Heddle::Server listens, what it keeps, and how it ends.
contract "Server" do
  include TestSupport::RackServer

  def serve_tls(**, &) = serve(bind: tls_address, **, &)

  def connect_tls(protocols = %w[http/1.1])
    context = TestSupport::Certificate.client_context
    context.alpn_protocols = protocols
    OpenSSL::SSL::SSLSocket.new(connect, context).tap do |ssl|
      ssl.hostname = "localhost"
      ssl.connect
    end
  end

  def test_several_addresses
    path = File.join(tempdir, "socket")
    serve(bind: ["tcp://127.0.0.1:0", "unix:#{path}"]) { |env| text(200, env["REMOTE_ADDR"].inspect) }
    unix = UNIXSocket.new(path)
    @sockets << unix

    assert_equal(['"127.0.0.1"'] * 2, [get("/").body, get("/", unix).body])
    assert_equal(["tcp://127.0.0.1:#{@server.port}", "unix:#{path}"], @server.addresses)
    stop_server

    refute_path_exists(path, "the socket is left behind")
  end

  def test_a_unix_socket_that_somebody_has_left_behind
    path = File.join(tempdir, "socket")
    UNIXServer.new(path).close
    serve(bind: "unix:#{path}") { text }
    @sockets << (socket = UNIXSocket.new(path))

    assert_equal(200, get("/", socket).status)
  end

  def test_a_unix_socket_that_somebody_listens_on
    path = File.join(tempdir, "socket")
    keep(UNIXServer.new(path))

    assert_raises(Errno::EADDRINUSE) { Heddle::Server.new(-> {}, bind: "unix:#{path}") }
  end

  def test_a_server_socket
    socket = keep(TCPServer.new("127.0.0.1", 0))
    serve(bind: socket) { text }

    assert_equal(200, get("/", connect(socket.addr[1])).status)
  end

  def test_an_address_that_is_none
    ["127.0.0.1:80", "http://a", 3, "ssl://127.0.0.1:0", "unix:", nil, []].each do |address|
      assert_match(/\Abind: /, assert_raises(ArgumentError) { Heddle::Server.new(-> {}, bind: address) }.message)
    end
  end

  def test_what_it_says_of_itself
    serve { text }

    assert_equal([10_000, false], [@server.limits.connections, @server.stopping?])
    assert_equal("#<Heddle::Server tcp://127.0.0.1:#{@server.port}>", @server.inspect)
    stop_server

    assert_predicate(@server, :stopping?)
    assert_match(/ \(stopping\)>\z/, @server.inspect)
    @server.stop_now # again is no harm
  end

  def test_what_it_refuses
    [3, nil].each { |app| assert_match(/\Aapp: /, assert_raises(ArgumentError) { Heddle::Server.new(app) }.message) }
    { limits: [nil, 5, { "idle" => 1 }, { slow: 1 }, { idle: 1e300 }], access_log: [5] }.each do |name, values|
      values.each do |value|
        error = assert_raises(ArgumentError) { Heddle::Server.new(-> {}, bind: "tcp://127.0.0.1:0", name => value) }

        assert_match(/\A(#{name}|idle): .*/, error.message)
      end
    end
  end

  def test_tls
    serve_tls { |env| text(200, "#{env["rack.url_scheme"]} #{env["rack.input"].read}") }
    ssl = connect_tls

    assert_equal("http/1.1", ssl.alpn_protocol)
    2.times { assert_equal("https abc", ask(ssl, "POST / HTTP/1.1\nhost: a\ncontent-length: 3", "abc").body) }
    large = "x" * 300_000

    assert_equal("https #{large}", ask(ssl, "POST / HTTP/1.1\nhost: a\ncontent-length: #{large.size}", large).body)
    ssl.close
  end

  def test_a_refusal_over_tls
    serve_tls { text }
    socket = connect_tls
    socket.write("bad\r\n\r\n#{"a" * 100_000}")

    assert_equal(400, answer(socket).status)
    assert_equal("", socket.read.to_s)
    stop_server

    assert_empty(@errors)
  end

  def test_a_client_that_goes_without_the_end_of_tls
    closed = Thread::Queue.new
    body = Class.new do
      def each = loop { yield("a" * 100_000) }
      define_method(:close) { closed << true }
    end
    serve_tls { |env| env["PATH_INFO"] == "/" ? [200, {}, body.new] : text(200, env["rack.input"].read) }
    sockets = Array.new(2) { connect_tls }
    sockets[0].write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    sockets[0].readpartial(100)
    sockets[1].write("POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\na")
    sleep(0.1) # until it is read
    sockets.each { |socket| socket.io.close }

    assert(closed.pop(timeout: 20))
    stop_server

    assert_empty(@errors)
  end

  def test_a_record_of_tls_that_comes_slowly
    serve_tls(limits: { head_time: 0.5 }) { text }
    ssl = connect_tls
    ssl.io.write("\x17\x03\x03\x01\x00".b) # so begins one of 256 bytes
    slowly = Thread.new do
      loop { ssl.io.write("a") && sleep(0.05) }
    rescue SystemCallError, IOError
      nil
    end

    assert_equal(408, answer(ssl).status)
  ensure
    slowly&.kill&.join
  end

  def test_tls_connections_become_idle_too
    serve_tls { text }
    ssl = connect_tls
    get("/", ssl)
    wait_until("it is idle") { tasks_of_connections.zero? }

    assert_equal(200, get("/", ssl).status)
    ssl.close
  end

  def test_a_client_that_speaks_no_tls
    serve_tls(limits: { handshake: 0.2 }) { text }
    silent = connect
    socket = connect
    socket.write("GET / HTTP/1.1\r\n\r\n")

    [socket, silent].each { |one| assert_cut(one) }

    assert_equal(200, get("/", connect_tls.tap { |ssl| @sockets.unshift(ssl) }).status)
    assert_empty(@errors)
  end

  # Such a client is refused (RFC 7301), and the application has nothing to do with it.
  def test_a_client_that_speaks_none_of_the_protocols
    serve_tls { text }
    error = assert_raises(OpenSSL::SSL::SSLError) { connect_tls(%w[acme-tls/1]) }

    assert_match(/no application protocol/, error.message)
    assert_equal("http/1.1", connect_tls(%w[acme-tls/1 http/1.1]).alpn_protocol)
    stop_server

    assert_empty(@errors)
  end

  def test_idle_connections_have_no_task
    serve { text }
    sockets = Array.new(50) { connect.tap { |socket| get("/", socket) } }
    never_used = Array.new(50) { connect }
    wait_until("they are idle") { tasks_of_connections.zero? }

    (sockets + never_used).shuffle.each { |socket| assert_equal(200, get("/", socket).status) }
  end

  def test_a_client_that_closes_its_idle_connection
    serve { text }
    connections = Array.new(5) { connect.tap { |socket| get("/", socket) } }
    wait_until("they are idle") { tasks_of_connections.zero? }
    before = descriptor_count
    connections.each(&:close)
    wait_until("the server has closed them") { descriptor_count == before - 10 }

    assert_equal(200, get.status)
  end

  def test_stop_waits_for_requests_and_closes_idle_connections
    serve_behind_gate
    idle = connect
    busy = connect
    busy.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_for_begun
    stopper = Thread.new { stop_server }

    assert_closed(idle)
    open_gate
    answer = answer(busy)

    assert_equal([200, "close"], [answer.status, answer.headers["connection"]])
    assert_closed(busy)
    stopper.join

    assert_raises(Errno::ECONNREFUSED) { connect }
  end

  # They are in the queue of the socket, which a close would reset.
  def test_stop_before_it_runs
    run do
      server = Heddle::Server.new(->(_) { text }, bind: "tcp://127.0.0.1:0")
      socket = connect(server.port)
      server.stop
      server.run

      assert_closed(socket)
    end
  end

  def test_stop_serves_those_who_have_connected
    started = Thread::Queue.new
    serve do
      started << true
      Fiber.blocking { sleep(0.3) } # holds up the thread, so nobody accepts
      text
    end
    first = connect
    first.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    started.pop
    others = Array.new(3) { connect.tap { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") } }
    stop_server(grace: 60)

    assert_equal([200] * 4, [first, *others].map { |socket| answer(socket).status })
  end

  # Stops the server while it holds up its thread, so that it knows nothing of what the block does.
  #
  # @yieldparam idle [Array<TCPSocket>] connections between two requests
  def stop_amid
    inside = Thread::Queue.new
    others = Thread::Queue.new
    serve do |env|
      next text unless env["PATH_INFO"] == "/stop"

      inside << true
      Heddle.blocking { others.pop }
      @stop << 5
      text
    end
    idle = Array.new(3) { connect.tap { |socket| get("/", socket) } }
    wait_until("they are idle") { tasks_of_connections.zero? }
    stopping = connect
    stopping.write("GET /stop HTTP/1.1\r\nhost: a\r\n\r\n")
    inside.pop
    yield idle
    others << true

    assert_equal(200, answer(stopping).status)
  end

  def test_stop_serves_those_who_have_connected_behind_one_who_has_gone
    late = nil
    stop_amid do
      connect.tap { |socket| socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")) }.close
      late = connect
      late.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    end

    assert_equal(200, answer(late).status)
  end

  def test_stop_serves_those_who_were_idle_and_have_sent_a_request
    sockets = []
    stop_amid do |idle|
      sockets = idle
      idle.first.close
      idle.drop(1).each { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }
    end
    answers = sockets.drop(1).map { |socket| answer(socket) }

    assert_equal([[200, "close"]] * 2, answers.map { |one| [one.status, one.headers["connection"]] })
  end

  # What a client sends meanwhile would make TCP drop the rest of the answer, if nobody took it.
  def test_the_last_answer_is_still_under_way_when_an_idle_connection_is_closed
    { "stop" => {}, "idle" => { idle: 0.2 }, "room" => { connections: 1 } }.each do |why, limits|
      serve(limits:) { text(200, "a" * 60_000) }
      socket = connect_slowly
      socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      wait_until("it is idle") { @server.counts[:responses]["2xx"] == 1 && @server.counts[:busy].zero? }
      stop = Thread.new { stop_server } if why == "stop"
      connect.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") if why == "room"
      sleep(0.4) # until its direction is closed
      3.times { socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") && sleep(0.05) }

      assert_equal([60_000, ""], [answer(socket).body.bytesize, socket.read], why)
      stop ? stop.join : stop_server
    end
  end

  def test_a_request_that_stops_its_server
    slow = Thread::Queue.new
    serve do |env|
      @server.stop(grace: 0.2) if env["PATH_INFO"] == "/stop"
      slow << true
      sleep
    end
    stopping = connect
    other = connect
    stopping.write("GET /stop HTTP/1.1\r\nhost: a\r\n\r\n")
    other.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    slow.pop

    [stopping, other].each { |socket| assert_closed(socket) }
    assert(@server_thread.join(30), "it has not ended")
    @server_thread = nil
  end

  def test_stop_cancels_what_takes_too_long
    started = Thread::Queue.new
    cleaned = false
    serve do
      started << true
      sleep
    ensure
      cleaned = true
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    started.pop
    stop_server(grace: 0.1)

    assert(cleaned)
    assert_nil(answer(socket))
  rescue Errno::ECONNRESET
    assert(cleaned)
  end

  # (Ruby has none when the process has as many memory mappings as it may have.)
  def test_no_stack_for_a_task
    serve { |env| sleep(env["QUERY_STRING"].to_f) && text }
    waiting = connect
    waiting.write("GET /?1 HTTP/1.1\r\nhost: a\r\n\r\n")
    idle = connect.tap { |socket| get("/", socket) }
    sleep(1) # until it is idle
    scope = @server.instance_variable_get(:@scope)
    scope.define_singleton_method(:spawn) { |*| raise(FiberError, "no stack") }
    _, said = capture_io do
      idle.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

      assert_closed(idle)
      assert_equal(503, answer(connect).status)
      assert_equal(200, answer(waiting).status)
    end

    assert_match(/Heddle::Server: no stack: it accepts no connections for a while/, said)
    scope.singleton_class.remove_method(:spawn)

    assert_equal(200, get.status)
  end

  def test_the_access_log
    reader, writer = pipe
    serve(access_log: writer) { |env| text(env["PATH_INFO"] == "/none" ? 404 : 200) }
    get("/a?b=c")
    get("/none")
    lines = Array.new(2) { reader.gets }

    time = %r{\d\d/\w{3}/\d{4}:[\d:]{8} [+-]\d{4}}

    assert_match(%r{\A127\.0\.0\.1 - - \[#{time}\] "GET /a\?b=c HTTP/1\.1" 200 \d+ \d+\.\d{4}$}, lines.first)
    assert_match(%r{"GET /none HTTP/1\.1" 404 }, lines.last)
  end

  # The Common Log Format has the size of the body, without the head of the answer and what is around its chunks.
  def test_the_sizes_in_the_access_log
    reader, writer = pipe
    serve(access_log: writer) do |env|
      case env["PATH_INFO"]
      when "/chunks" then [200, {}, %w[one two three].each]
      when "/stream" then [200, {}, ->(stream) { stream.write("a" * 10) && stream.close }]
      when "/large" then text(200, "a" * 300_000)
      when "/none" then [204, {}, []]
      else text
      end
    end
    socket = connect
    %w[/ /chunks /stream /large].each { |path| get(path, socket) }
    ["GET /none", "GET /", "HEAD /"].each do |line|
      socket.write("#{line} HTTP/1.1\r\nhost: a\r\n\r\n")
      answer(socket, head: line != "GET /")
    end
    ask(connect, "GET /chunks HTTP/1.0")

    assert_equal([5, 11, 10, 300_000, 0, 5, 0, 11], Array.new(8) { reader.gets[/" \d+ (\d+) /, 1].to_i })
  end

  failures = lambda do |env|
    case env["PATH_INFO"]
    when "/header" then [200, { "x-a" => "1\r\n2" }, ["x"]]
    when "/task" then Heddle.spawn { raise "of a task" } && sleep
    when "/raise" then raise "of the application"
    else [200, {}, ["fine"]]
    end
  end

  # Also where the answer is not the application's.
  define_method(:test_the_status_that_the_client_has_got) do
    reader, writer = pipe
    serve(access_log: writer, &failures)
    paths = %w[/header /task /raise /]
    statuses = paths.map { |path| get(path).status }
    lines = Array.new(4) { reader.gets[/"GET (\S+ \S+" \d+ \d+)/, 1] }

    assert_equal([500, 500, 500, 200], statuses)
    assert_equal(paths, lines.map { |line| line[/\S+/] })
    assert_equal(statuses, lines.map { |line| line[/" (\d+)/, 1].to_i })
    assert_equal([21, 21, 21, 4], lines.map { |line| line[/\d+\z/].to_i }, "of the body: Internal Server Error, fine")
    assert_equal([1, 3], @server.counts[:responses].values_at("2xx", "5xx"))
    assert_equal(3, @errors.size)
  end

  define_method(:test_a_handler_of_errors_sees_the_request_as_the_name_of_the_task) do
    serve(&failures)
    told = []
    Heddle.on_error { |error, task| told << [error.class, task.name, task] }
    %w[/raise?a=b%0Ac /header /task].each { |path| get(path) }

    assert_equal(%w[/raise?a=b%0Ac /header /task].map { |path| "the request GET #{path}" }, told.map { |one| one[1] })
    assert_equal([true], told.map { |one| one.last.name.match?(/\Aconnection of 127\.0\.0\.1:\d+\z/) }.uniq)
  end

  define_method(:test_an_error_is_told_with_its_request) do
    serve(&failures)
    Heddle.on_error(nil)
    @server_thread.report_on_exception = true
    _, told = capture_io { %w[/raise?a=b%0Ac /header /task].each { |path| get(path) } }

    assert_equal(%w[/raise?a=b%0Ac /header /task].map { |path| "heddle: the request GET #{path} has failed:" },
                 told.lines(chomp: true).grep(/\Aheddle: /))
    assert_includes(told, "of the application (RuntimeError)")
  end

  def test_net_http
    serve { |env| text(200, "#{env["REQUEST_METHOD"]} #{env["rack.input"].read}") }
    Net::HTTP.start("127.0.0.1", @server.port) do |http|
      3.times { |i| assert_equal("POST #{i}", http.post("/", i.to_s).body) }
      assert_equal("GET ", http.get("/").body)
    end
  end

  private

  # (TLS says why before it closes.)
  def assert_cut(socket)
    socket.read
  rescue Errno::ECONNRESET
    nil
  end
end
