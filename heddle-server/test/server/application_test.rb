# frozen_string_literal: true

# bin/test: takes 4 s, 0.7 of a core

require_relative "../test_helper"
require "support/certificate"
require "support/http2_client"
require "support/rack_server"

# What an application may answer, and how it may take over a connection. Other servers of Rack do the same.
contract "ServerApplication" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  UPGRADE = "GET /1 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n" unless defined?(UPGRADE)

  # @return [Array] what both versions of HTTP have answered
  def get_both(path = "/")
    answers = [get(path), http2.get(path)]

    assert_equal([200, 200], answers.map(&:status))
    answers
  end

  def test_texts_and_bytes_in_one_answer
    bytes = "\x89PNG\xFF".b
    serve do |env|
      [200, { "x-name" => "é.png" }, env["PATH_INFO"] == "/text" ? ["é" * 5] : ["é", bytes, "é".encode("UTF-16LE")]]
    end

    get_both("/text").each { |answer| assert_equal(("é" * 5).b, answer.body.b) }
    get_both("/mixed").each do |answer|
      assert_equal("é".b + bytes + "\xE9\0".b, answer.body.b)
      assert_equal("é.png".b, answer.headers["x-name"].b)
    end
  end

  def test_bytes_in_a_header
    serve(lint: false) { [200, { "x-bytes" => "/\xFF" }, ["a"]] }

    get_both.each { |answer| assert_equal("/\xFF".b, answer.headers["x-bytes"].b) }
  end

  def test_the_name_of_a_header_that_is_a_symbol
    serve(lint: false) { [200, { "x-one": "1", x_two: 2, "x-three" => nil }, ["a"]] }

    get_both.each do |answer|
      assert_equal(["1", "2", ""], answer.headers.values_at("x-one", "x_two", "x-three").map(&:to_s))
    end
  end

  # The guide says so: what has been read is not kept.
  def test_a_body_that_is_read_twice
    require "rack/rewindable_input"
    twice = lambda do |env|
      input = env["rack.input"]
      text(200, [input.read, input.rewind && input.read].inspect)
    end
    serve(lint: false) do |env|
      (env["PATH_INFO"] == "/" ? twice : Rack::RewindableInput::Middleware.new(twice)).call(env)
    end
    said = %w[/ /again].map { |path| ask(connect, "POST #{path} HTTP/1.1\nhost: a\ncontent-length: 3", "abc").body }

    assert_equal([["abc", false], %w[abc abc]].map(&:inspect), said)
  end

  # Middleware wraps the Array of an application in an object whose each does more.
  def test_middleware_hears_when_an_array_is_sent
    require "rack/events"
    heard = Thread::Queue.new
    handler = Class.new do
      include Rack::Events::Abstract

      define_method(:on_send) { |request, _| heard << [request.path, :sent] }
      define_method(:on_finish) { |request, _| heard << [request.path, :finished] }
    end
    listed = [200, {}, %w[a b]].freeze
    serve(lint: false) { |env| Rack::Events.new(->(_) { listed }, [handler.new]).call(env) }

    get_both.each { |answer| assert_equal("ab", answer.body) }
    assert_equal([["/", :sent], ["/", :finished]] * 2, Array.new(4) { heard.pop(timeout: 20) })
  end

  def test_an_error_that_is_no_standard_error
    errors = { "/missing" => NotImplementedError, "/mistake" => SyntaxError, "/deep" => SystemStackError,
               "/memory" => NoMemoryError, "/security" => SecurityError, "/exit" => SystemExit,
               "/odd" => Class.new(Exception) } # rubocop:disable Lint/InheritException
    serve do |env|
      path = env["PATH_INFO"]
      path.start_with?("/body") ? [200, {}, Enumerator.new { raise NotImplementedError }] : raise(errors.fetch(path))
    end
    errors.each do |path, error|
      assert_equal([500, 500], [get(path).status, http2.get(path).status])
      assert_equal([error] * 2, Array.new(2) { @errors.pop.class })
    end
    socket = connect
    socket.write("GET /body HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_match(/\AHTTP.1.1 200/, socket.read, "cut off, as its head was sent")
    assert_instance_of(NotImplementedError, @errors.pop)
  end

  # As under Puma: an exit in a library is an error of its request.
  def test_an_exit_in_a_task_or_in_a_body_ends_the_request_alone
    exits = Class.new do
      def each = yield("part")
      def close = exit
    end
    serve(lint: false) do |env|
      case env["PATH_INFO"]
      when "/task" then Heddle.spawn { exit(3) } && sleep
      when "/body" then [200, {}, exits.new]
      else text
      end
    end

    assert_equal([500, 500], [get("/task").status, http2.get("/task").status])
    assert_equal(%w[part part], [get("/body").body, http2.get("/body").body])
    assert_equal([SystemExit] * 4, Array.new(4) { @errors.pop.class })
    assert_equal([200, 200], [get.status, http2.get.status])
  end

  def test_a_request_that_is_cancelled_ends
    serve { Heddle.current_task.cancel && sleep }

    assert_closed(connect.tap { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") })
    assert_equal(Protocol::HTTP2::INTERNAL_ERROR, http2.get.reset)
    assert_empty(@errors)
  end

  # The task raises it, and so does the request that waits for it.
  def test_the_error_of_a_task_that_the_request_waits_for_is_told_once
    serve { Heddle.spawn { raise "in a task" }.value }

    assert_equal([500, 500], [get.status, http2.get.status])
    stop_server

    assert_equal(["in a task"] * 2, Array.new(@errors.size) { @errors.pop.message })
  end

  # (What has failed later is attached to it.)
  def test_what_fails_after_the_error_of_a_request_is_told
    Heddle.on_error { |error,| @errors << [error.message, error.suppressed.map(&:message)] }
    serve do
      Heddle.spawn do
        sleep
      ensure
        raise "later"
      end
      Heddle.spawn { raise "first" }.value
    end

    assert_equal(500, get.status)
    stop_server

    assert_equal([["first", []], ["first", ["later"]]], Array.new(@errors.size) { @errors.pop })
  end

  def test_each_callback_for_the_end_is_called
    called = Thread::Queue.new
    serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*, error) { called << error.message } << ->(*) { raise "in the callback" }
      raise "in the application"
    end

    assert_equal(500, get.status)
    assert_equal("in the application", called.pop)
    assert_equal(["in the callback", "in the application"], Array.new(2) { @errors.pop.message })
  end

  # Bodies of a middleware that waits for the end of the answer, as Rails has one.
  def serve_with_callback(called, bodies)
    serve(lint: false, limits: { stall: 5 }) do |env|
      env["rack.response_finished"] << ->(*, error) { called << error }
      status, headers, body = bodies.fetch(env["PATH_INFO"])
      [status, headers, body]
    end
  end

  def test_an_error_of_a_streaming_body_whose_end_somebody_waits_for
    called = Thread::Queue.new
    failing = ->(stream) { stream.write("part") && raise("in the body") }
    serve_with_callback(called, "/" => [200, {}, failing])
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_match(/\r\n4\r\npart\r\n\z/, socket.read, "cut off")
    assert_equal(["part", 2], http2.get.to_a.values_at(2, 4), "cut off")
    assert_equal(["in the body"] * 4, Array.new(2) { [called.pop, @errors.pop] }.flatten.map(&:message))
  end

  def test_a_client_that_has_gone_is_told_to_the_body_whatever_else_it_has
    endless = Class.new { def each = loop { yield("a" * 100_000) } }
    bodies = { "/call" => [200, {}, ->(stream) { loop { stream.write("a" * 100_000) } }],
               "/each" => [200, {}, endless.new],
               "/length" => [200, { "content-length" => "999999999" }, endless.new] }
    ended = Thread::Queue.new
    bodies.each_value do |_, _, body|
      body.extend(Module.new do
        define_method(body.respond_to?(:each) ? :each : :call) do |*arguments, &block|
          super(*arguments, &block)
        rescue StandardError => e
          ended << e
          raise
        end
      end)
    end
    called = Thread::Queue.new
    serve_with_callback(called, bodies)
    bodies.each_key do |path|
      socket = connect
      socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
      socket.readpartial(1000)
      socket.close

      assert(ended.pop(timeout: 20), "#{path}: its each or call goes on")
      assert(called.pop(timeout: 20))
    end

    assert_empty(@errors)
  end

  def test_an_upgrade_whose_end_somebody_waits_for
    called = Thread::Queue.new
    echo = ->(stream) { stream.write(stream.readpartial(100)) && stream.close }
    serve_with_callback(called, "/1" => [101, { "rack.protocol" => "echo" }, echo])
    socket = connect
    socket.write(UPGRADE)

    assert_match(/ 101 /, socket.gets("\r\n\r\n"))
    socket.write("hello")

    assert_equal("hello", socket.read)
    assert_nil(called.pop)
  end

  # Rack::Lint looks at these, too.
  def test_the_name_of_the_server
    serve { |env| text(200, env.values_at("SERVER_NAME", "SERVER_PORT").join(" ")) }
    { "[::1]:8080" => "[::1] 8080", "[::1]" => "[::1] ", "a:" => "a ", "a:80" => "a 80", ":80" => "localhost 80" }
      .each do |host, expected|
        assert_equal(expected, ask(connect, "GET / HTTP/1.1\nhost: #{host}").body)
        session = http2

        fields = session.fields.map { |name, value| [name, name == ":authority" ? host : value] }

        assert_equal(expected, session.reply(session.request(fields: fields)).body)
      end
  end

  # Who gets one would wait for another answer, and take that to its next request for it.
  def test_a_status_that_is_none_of_an_answer
    serve(lint: false) { |env| [Integer(env["PATH_INFO"].delete_prefix("/")), {}, ["hello"]] }
    [100, 101, 103, 199, 99, 0, -1, 1000].each do |status|
      assert_equal(500, get("/#{status}").status)
      assert_match(/status #{status} /, @errors.pop.message)
    end

    assert_equal(999, get("/999").status)
  end

  def test_the_body_of_an_answer_that_is_not_sent_is_closed
    closed = Thread::Queue.new
    body = Class.new do
      def each = nil
      define_method(:close) { (closed << :closed) && raise("in close") }
    end
    serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*) { closed << :finished }
      io = env["rack.hijack"].call
      Thread.new { 2.times { closed.pop } && io.write("hey") && io.close }
      [-1, {}, body.new]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal("hey", socket.read)
    assert_equal("in close", @errors.pop.message)
  end

  # Where the body is not sent, too, and whatever its close raises.
  def test_the_end_of_an_answer_comes_behind_it
    go_on = Thread::Queue.new
    heard = Thread::Queue.new
    body = Class.new do
      def each = yield("hello")
      define_method(:close) { (heard << :closed) && raise("in close") }
    end
    file = Class.new(body) { def to_path = __FILE__ }
    serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*) { heard << :finished } << ->(*) { (heard << :first) && go_on.pop }
      path = env["PATH_INFO"]
      path == "/file" ? [200, {}, file.new] : [Integer(path.delete_prefix("/")), {}, body.new]
    end
    [%w[GET 200], %w[HEAD 200], %w[GET 204], %w[GET 205], %w[GET 304], %w[GET file]].each do |method, path|
      socket = connect
      socket.write("#{method} /#{path} HTTP/1.1\r\nhost: a\r\n\r\n")
      session = http2
      answers = [answer(socket, head: method == "HEAD" || %w[204 304].include?(path)),
                 session.reply(session.request("/#{path}", method:))]

      assert_equal([Integer(path, exception: false) || 200] * 2, answers.map(&:status))
      2.times { go_on << true }

      assert_equal(%i[closed closed finished finished first first], Array.new(6) { heard.pop }.sort)
      assert_equal(["in close"] * 2, Array.new(2) { @errors.pop.message })
    end
    stop_server

    assert_equal([0, 0], [heard.size, @errors.size])
  end

  # It gets the first error.
  def test_a_body_whose_close_fails_when_the_answer_is_wrong
    heard = Thread::Queue.new
    body = Class.new do
      def each = yield("hello")
      define_method(:close) { (heard << :closed) && raise("in close") }
    end
    serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*, error) { heard << error.message }
      [200, { "content-length" => "many" }, body.new]
    end

    assert_equal(500, get.status)
    assert_equal(:closed, heard.pop)
    assert_match(/invalid value/, heard.pop)
    assert_equal(["in close", "invalid value"], Array.new(2) { @errors.pop.message[/in close|invalid value/] })
  end

  def test_a_file_that_has_gone
    closed = Thread::Queue.new
    body = Class.new do
      def to_path = "/nowhere"
      def each = yield("by each")
      define_method(:close) { closed << true }
    end
    serve(lint: false) { |env| [200, env["PATH_INFO"] == "/length" ? { "content-length" => "7" } : {}, body.new] }

    %w[/ /length].each { |path| assert_equal(["by each"] * 2, get_both(path).map(&:body)) }
    assert_equal([200, ""], http2.get("/", method: "HEAD").to_a.values_at(0, 2))
    wait_until("each is closed") { closed.size == 5 }
  end

  # Callbacks that wait for the end get such an error, too.
  def test_an_error_that_is_no_standard_error_ends_the_request
    called = Thread::Queue.new
    serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*, error) { called << error }
      raise NotImplementedError
    end

    assert_equal(500, get.status)
    assert_instance_of(NotImplementedError, called.pop(timeout: 1))
  end

  def test_the_body_in_whose_place_a_hijack_is_called_is_closed
    closed = Thread::Queue.new
    body = Class.new do
      def each = nil
      define_method(:close) { closed << true }
    end
    serve { [200, { "rack.hijack" => ->(stream) { stream.write("part") && stream.close } }, body.new] }

    assert_equal("part", get.body)
    assert(closed.pop(timeout: 1))
  end

  def test_every_request_has_an_input
    serve { |env| text(200, env["rack.input"].read.inspect) }

    assert_equal(['""'] * 2, get_both.map(&:body))
  end

  def test_an_upgrade_that_is_not_taken
    serve { |env| text(200, "#{env["rack.input"].read} #{env["PATH_INFO"]} #{env["HTTP_UPGRADE"]}") }
    socket = connect
    socket.write(UPGRADE, "GET /2 HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal([" /1 echo", " /2 "], Array.new(2) { answer(socket).body }, "what follows is the next request")
  end

  def test_what_is_written_to_an_upgraded_connection_is_sent
    go_on = Thread::Queue.new
    serve do |env|
      [101, { "rack.protocol" => "echo" }, lambda do |stream|
        stream.write("first")
        go_on.pop
        stream << "last"
        env["PATH_INFO"] == "/1" ? stream.close : Heddle.spawn { stream.close }
      end]
    end
    [UPGRADE, UPGRADE.sub("/1", "/2")].each do |request|
      socket = connect
      socket.write(request)

      assert_match(/ 101 /, socket.gets("\r\n\r\n"))
      assert_equal("first", socket.read(5))
      go_on << true

      assert_equal("last", socket.read)
    end
  end

  def test_a_large_message_of_an_upgraded_connection
    size = 2 << 20
    read = ->(stream) { stream.write(stream.read(4), stream.read(size).bytesize.to_s) && stream.close }
    serve { [101, { "rack.protocol" => "echo" }, read] }
    socket = connect
    socket.write(UPGRADE)
    socket.gets("\r\n\r\n")
    copied = bytes_copied do
      socket.write("head", "a" * size)

      assert_equal("head#{size}", socket.read)
    end

    assert_operator(copied, :<, 10 * size, "it was dozens of times the size, and grew with its square")
  end

  # How many bytes methods of String have copied out of Strings, or moved within them, in all threads.
  def bytes_copied
    moved = 0
    count = lambda do |call|
      moved += call.self.bytesize if call.method_id.end_with?("!")
      moved += call.return_value.bytesize unless call.return_value.equal?(call.self)
    end
    methods = TracePoint.new(:c_return) do |call|
      count.call(call) if String === call.self && String === call.return_value # rubocop:disable Style/CaseEquality
    end
    methods.enable
    yield
    moved
  ensure
    methods&.disable
  end

  def test_a_hijack_in_the_headers_of_the_answer
    callback = lambda do |stream|
      stream.write("hi ", stream.readpartial(5))
      stream.close
    end
    serve(lint: false) { [101, { "Upgrade" => "echo", "Connection" => "Upgrade", "rack.hijack" => callback }, []] }
    socket = connect
    socket.write(UPGRADE, "there")
    head = socket.gets("\r\n\r\n")

    assert_match(/\AHTTP.1.1 101 /, head)
    assert_match(/^upgrade: echo\r$/, head)
    assert_match(/^connection: upgrade\r$/, head)
    assert_equal("hi there", socket.read)
  end

  def test_a_hijack_twice
    serve(lint: false) do |env|
      ios = Array.new(2) { env["rack.hijack"].call }
      ios.last.write(ios.uniq.size.to_s)
      ios.last.close
      [200, {}, []]
    end
    socket = connect
    socket.write(UPGRADE)

    assert_equal("1", socket.read)
  end

  def test_a_hijack_over_tls_has_the_bytes_that_have_come
    serve(bind: tls_address, lint: false) do |env|
      io = env["rack.hijack"].call
      io.write(io.readpartial(100).reverse)
      io.close
      [200, {}, []]
    end
    ssl = OpenSSL::SSL::SSLSocket.new(connect, TestSupport::Certificate.client_context)
    ssl.hostname = "localhost"
    ssl.connect
    ssl.write("#{UPGRADE}early \xFF".b)

    assert_equal("\xFF ylrae".b, ssl.read.b)
  end

  def test_the_word_to_go_on_comes_before_the_answer
    serve do |env|
      input = env["rack.input"]
      [200, {}, Enumerator.new { |out| out << input.read(10) << input.read(10).to_s }]
    end
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 10\r\n\r\n")

    assert_equal("HTTP/1.1 100 Continue\r\n\r\n", socket.gets("\r\n\r\n"))
    socket.write("0123456789")

    assert_equal("0123456789", answer(socket).body)
  end

  def test_no_word_to_go_on_comes_in_the_midst_of_the_answer
    serve(lint: false) do |env|
      body = Class.new { define_method(:each) { |&block| block.call(env["rack.input"].read(4)) } }.new
      [200, { "content-length" => "4" }, body]
    end
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n", "abcd")

    assert_equal([200, "abcd"], answer(socket).then { |answer| [answer.status, answer.body] })
  end

  def test_a_streamed_answer_for_an_old_client
    serve { [200, {}, Enumerator.new { |out| out << "a" << "b" }] }

    assert_equal("ab", ask(connect, "POST / HTTP/1.0\ncontent-length: 1\nexpect: 100-continue", "x").body)
  end

  def test_spaces_behind_a_header
    serve { |env| text(200, "#{env["HTTP_X_A"]}#{env["rack.input"].read}") }
    socket = connect
    answer = ask(socket, "POST / HTTP/1.1\nhost: a \nx-a: b c \t \ncontent-length: 3 \nconnection: close ", "def")

    assert_equal([200, "b cdef"], [answer.status, answer.body])
    assert_closed(socket)
    socket = connect

    body = "3\r\nabc\r\n0\r\n\r\n"

    assert_equal("abc", ask(socket, "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked \t", body).body)
  end
end
