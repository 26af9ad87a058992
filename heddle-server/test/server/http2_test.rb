# frozen_string_literal: true

# bin/test: takes 20 s, 0.5 of a core

require_relative "../test_helper"
require "open3"
require "support/certificate"
require "support/http2_client"
require "support/rack_server"

# What an HTTP/2 client sees of Heddle::Server (RFC 9113).
contract "ServerHTTP2" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  def connect_tls(*protocols)
    context = TestSupport::Certificate.client_context
    context.alpn_protocols = protocols
    OpenSSL::SSL::SSLSocket.new(connect, context).tap do |ssl|
      ssl.sync_close = true
      ssl.hostname = "localhost"
      ssl.connect
      @sockets.unshift(ssl)
    end
  end

  def test_one_request
    serve { |env| text(200, env.values_at("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "SERVER_PROTOCOL").join(" ")) }
    reply = http2.get("/a/b?c=d")

    assert_equal([200, "GET /a/b c=d HTTP/2"], [reply.status, reply.body])
    assert_equal("19", reply.headers["content-length"])
    assert_in_delta(Time.now, Time.httpdate(reply.headers["date"]), 60)
  end

  def test_tls
    serve(bind: tls_address) { |env| text(200, "#{env["rack.url_scheme"]} #{env["rack.input"].read.size}") }
    ssl = connect_tls("h2", "http/1.1")

    assert_equal("h2", ssl.alpn_protocol)
    session = http2(ssl)

    assert_equal("https 0", session.get.body)
    assert_equal("https 100000", session.reply(session.request(body: "a" * 100_000)).body)
    old = connect_tls("http/1.1")

    assert_equal("http/1.1", old.alpn_protocol)
    assert_equal("https 0", get("/", old).body)
  end

  def test_without_http2
    serve(bind: [tls_address, "tcp://127.0.0.1:0"], http2: false) { text }

    assert_equal("http/1.1", connect_tls("h2", "http/1.1").alpn_protocol)
    socket = connect(Integer(@server.addresses.last[/\d+\z/]))
    socket.write(Protocol::HTTP2::CONNECTION_PREFACE)

    assert_equal(505, answer(socket).status)
    refute_predicate(@server, :http2?)
  end

  def test_the_preface_comes_in_pieces
    serve { text }
    socket = connect
    Protocol::HTTP2::CONNECTION_PREFACE.chars.each_slice(9) do |part|
      socket.write(part.join)
      sleep(0.02)
    end
    session = http2(socket, greet: false)
    session.send_frame(:settings, 0, 0)

    assert_equal(200, session.get.status)
  end

  def test_requests_run_side_by_side
    go_on = Thread::Queue.new
    serve { |env| text(200, (env["PATH_INFO"] == "/slow" ? go_on.pop : "fast").to_s) }
    session = http2
    slow = session.request("/slow")

    assert_equal("fast", session.get("/").body)
    go_on << "slow"

    assert_equal("slow", session.reply(slow).body)
  end

  def test_headers_of_the_request_are_in_the_environment
    env = nil
    serve { |given| (env = given) && text }
    session = http2
    session.get(fields: session.fields("/") +
      [%w[cookie a=1], %w[x-one 1], %w[cookie b=2], %w[x-one 2], %w[te trailers], %w[content-type text/x], %w[x_one 3],
       %w[host LOCALHOST]])

    assert_equal(["a=1; b=2", "1,2", "text/x", "localhost", "127.0.0.1"],
                 env.values_at("HTTP_COOKIE", "HTTP_X_ONE", "CONTENT_TYPE", "HTTP_HOST", "REMOTE_ADDR"))
    refute(env.key?("rack.hijack"))
  end

  def test_large_bodies_both_ways
    serve { |env| text(200, env["rack.input"].read) }
    session = http2(settings: { 4 => 1_000_000 })
    session.send_frame(:window, 0, 0, [1_000_000].pack("N"))
    body = Random.new(1).bytes(500_000)
    id = session.request(open: true, content_length: body.bytesize.to_s)
    sender = Thread.new do
      body.scan(/.{1,10000}/mn).each { |part| session.data(id, part) }
      session.data(id, "", last: true)
    end

    assert_operator(session.reply(id).body, :eql?, body) # (they are large)
    sender.join
  end

  # Not more than the client allows, on the stream and on the connection.
  def test_flow_control_of_answers
    serve { |env| text(200, "x" * (env["PATH_INFO"] == "/big" ? 100_000 : 10)) }
    session = http2(settings: { 4 => 20_000 })
    big = session.request("/big")

    assert_equal(20_000, session.part(big, 20_000).body.bytesize)
    assert_equal("x" * 10, session.get.body) # another stream goes on meanwhile
    session.send_frame(:window, 0, big, [60_000].pack("N"))
    session.part(big, 65_535 - 10) # now the window of the connection is used up
    session.send_frame(:window, 0, 0, [100_000].pack("N"))
    session.part(big, 80_000)
    session.send_frame(:settings, 0, 0, [4, 40_000].pack("nN")) # all windows grow by 20,000

    assert_equal("x" * 100_000, session.reply(big).body)
  end

  # What the application does not read is not asked for.
  def test_flow_control_of_requests
    go_on = Thread::Queue.new
    serve { |env| go_on.pop && text(200, env["rack.input"].read.bytesize.to_s) }
    session = http2
    id = session.request(open: true)
    13.times { session.data(id, "a" * 16_384) }
    session.send_frame(:ping, 0, 0, "12345678")
    session.wait_for(:ping, TestSupport::HTTP2Client::ACK)

    refute(session.frames.any? { |type, _, stream| type == 8 && stream == id }, "the window was opened")
    go_on << true
    session.data(id, "", last: true)

    assert_equal((13 * 16_384).to_s, session.reply(id).body)
    assert(session.frames.any? { |type, _, stream| type == 8 && stream.zero? })
  end

  def test_padding_is_no_part_of_the_body
    serve { |env| text(200, env["rack.input"].read) }
    session = http2
    id = session.request(open: true, content_length: "3")
    session.send_frame(:data, TestSupport::HTTP2Client::PADDED | TestSupport::HTTP2Client::END_STREAM, id,
                       "\x05abc\0\0\0\0\0")

    assert_equal("abc", session.reply(id).body)
  end

  def test_headers_in_several_frames
    serve { |env| text(200, env["HTTP_X"]) }
    session = http2
    block = session.block(session.fields(x: "y" * 300))
    session.send_frame(:headers, TestSupport::HTTP2Client::END_STREAM, 1, block.byteslice(0, 10))
    session.send_frame(:continuation, 0, 1, block.byteslice(10, 100))
    session.send_frame(:continuation, TestSupport::HTTP2Client::END_HEADERS, 1, block.byteslice(110..))

    assert_equal("y" * 300, session.reply(1).body)
  end

  # (For Rails, as with HTTP/1.)
  def test_a_body_of_unknown_length_is_said_to_come_in_chunks
    serve { |env| text(200, env.values_at("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING").inspect) }
    session = http2
    said = [session.request, session.request(body: "abc"), session.request(body: "abc", content_length: "3")]

    assert_equal([[nil, nil], [nil, "chunked"], ["3", nil]].map(&:inspect), said.map { |id| session.reply(id).body })
  end

  # The client says how much of it it has read: TCP would drop the rest of the answer, if nobody took that.
  def test_an_answer_that_is_still_under_way_when_the_server_stops
    serve { text(200, "a" * 60_000) }
    session = http2(connect_slowly)
    id = session.request
    wait_until("it is idle") { @server.counts[:idle] == 1 }
    stop = Thread.new { stop_server }
    sleep(0.4) # until its direction is closed
    3.times { session.send_frame(:window, 0, 0, [1000].pack("N")) && sleep(0.05) }

    assert_equal(60_000, session.reply(id).body.bytesize)
    assert_equal(Protocol::HTTP2::NO_ERROR, session.finish)
    stop.join
  end

  # Each piece takes 50 bytes of memory besides its own.
  def test_pieces_of_a_single_byte_are_joined_until_they_are_read
    go_on = Thread::Queue.new
    serve do |env|
      go_on.pop
      body = env["protocol.http.request"].body
      pieces = []
      while (piece = body.read)
        pieces << piece
      end
      text(200, "#{pieces.size} #{pieces.join}")
    end
    session = http2
    id = session.request(open: true)
    bytes = Array.new(10_000) { |i| (65 + (i % 26)).chr }
    session.io.write(bytes.map { |byte| session.frame(:data, 0, id, byte) }.join)
    session.data(id, "", last: true)
    session.send_frame(:ping, 0, 0, "all came")
    session.wait_for(:ping)
    go_on << true

    assert_equal("3 #{bytes.join}", session.reply(id).body)
  end

  def test_a_streaming_body_is_sent_as_it_is_made
    go_on = Thread::Queue.new
    serve do
      [200, { "content-type" => "text/event-stream" }, lambda do |stream|
        while (event = go_on.pop)
          stream.write("data: #{event}\n\n")
        end
        stream.close
      end]
    end
    session = http2
    id = session.request
    3.times do |i|
      go_on << i

      assert_equal("data: #{i}\n\n", session.part(id, 9 * (i + 1)).body[-9..])
    end
    go_on.close

    assert_equal(27, session.reply(id).body.bytesize)
  end

  def test_a_streaming_body_reads_the_request
    serve do
      [200, {}, lambda do |stream|
        while (part = stream.read(3))
          stream.write(part.upcase)
        end
        stream.close
      end]
    end
    session = http2
    id = session.request(open: true)
    session.data(id, "abc")

    assert_equal("ABC", session.part(id, 3).body)
    session.data(id, "def", last: true)

    assert_equal("ABCDEF", session.reply(id).body)
  end

  def test_a_body_of_unknown_length
    serve { [200, {}, Enumerator.new { |yielder| 3.times { |i| yielder << "part #{i}" } }] }

    assert_equal("part 0part 1part 2", http2.get.body)
  end

  def test_an_application_that_would_end_the_connection
    serve { text(200, "bye", connection: "close") }
    session = http2

    2.times do
      answer = session.get

      assert_equal([200, nil, "bye"], [answer.status, answer.headers["connection"], answer.body])
    end
  end

  def test_answers_without_a_body
    serve do |env|
      case [env["REQUEST_METHOD"], env["PATH_INFO"]]
      in ["HEAD", "/"] then text
      in ["HEAD", _] then [200, {}, []]
      else [204, {}, []]
      end
    end
    session = http2
    head = session.get(fields: session.fields("/", method: "HEAD"))

    assert_equal([200, "5", ""], [head.status, head.headers["content-length"], head.body])
    head = session.get(fields: session.fields("/empty", method: "HEAD"))

    assert_equal([200, nil], [head.status, head.headers["content-length"]], "its length is not known")
    none = session.get

    assert_equal([204, nil], [none.status, none.headers["content-length"]])
  end

  def test_expect_100_continue
    serve { |env| text(200, env["rack.input"].read) }
    session = http2
    id = session.request(open: true, expect: "100-continue")
    session.wait_for(:headers)
    session.data(id, "abc", last: true)
    reply = session.reply(id)

    assert_equal([[100], 200, "abc"], [reply.interim, reply.status, reply.body])
  end

  def test_an_interim_response
    serve do |env|
      refused = [{ "link" => "a\r\nb: c" }, { "b c" => "d" }, { "Link" => "a" }].count do |headers|
        env["protocol.http.request"].send_interim_response(103, headers) && false
      rescue ArgumentError
        true
      end
      text(200, refused.to_s)
    end
    reply = http2.then { |session| session.reply(session.request) }

    assert_equal([[103], 200, "2"], [reply.interim, reply.status, reply.body])
  end

  def test_a_body_that_the_application_does_not_read
    serve { text }
    session = http2
    id = session.request(open: true)
    session.data(id, "abc")
    reply = session.reply(id)
    session.wait_for(:reset)

    assert_equal([200, "hello", 0], [reply.status, reply.body, reply.reset])
    # It is on its way when the client hears of it.
    session.data(id, "def")
    session.send_frame(:headers, 5, id, session.block([%w[server-timing a]]))

    assert_equal(200, session.get.status)
    assert_empty(session.goaways)
  end

  def test_trailers
    seen = nil
    serve do |env|
      body = env["rack.input"].read
      seen = env["protocol.http.request"].headers.trailer.to_a
      text(200, body)
    end
    session = http2
    id = session.request(open: true, te: "trailers", trailer: "server-timing")
    session.data(id, "abc")
    session.send_frame(:headers, 5, id, session.block([%w[server-timing a;dur=1], %w[content-length 7], %w[x_a 1]]))

    assert_equal("abc", session.reply(id).body)
    assert_equal([["server-timing", "a;dur=1"]], seen)
  end

  def test_errors_of_the_application
    serve do |env|
      case env["PATH_INFO"]
      when "/header" then [200, { "x" => "a\r\nset-cookie: b=c" }, []]
      when "/body" then [200, {}, Enumerator.new { |yielder| (yielder << "abc") && raise("in the body") }]
      when "/length" then [200, { "content-length" => "3" }, Enumerator.new { |yielder| yielder << "four" }]
      else raise("secret")
      end
    end
    session = http2

    assert_equal([500, "Internal Server Error"], session.get.to_a.values_at(0, 2))
    assert_equal("secret", @errors.pop.message)
    assert_equal(500, session.get("/header").status)
    assert_match(/header/, @errors.pop.message)
    reply = session.get("/body")

    assert_equal([200, "abc", 2], [reply.status, reply.body, reply.reset])
    assert_equal("in the body", @errors.pop.message)
    assert_equal(2, session.get("/length").reset)
    assert_match(/content-length/, @errors.pop.message)
  end

  def test_the_body_is_closed_once_also_when_the_client_wants_no_more
    closed = 0
    endless = Class.new do
      define_method(:each) { |&block| loop { block.call("a" * 10_000) } }
      define_method(:close) { closed += 1 }
    end
    serve { |env| env["PATH_INFO"] == "/" ? [200, {}, endless.new] : text }
    session = http2
    id = session.request
    session.part(id, 10_000)
    session.send_frame(:reset, 0, id, [8].pack("N"))
    wait_until("the body is closed") { closed == 1 }
    other = http2
    other.part(other.request, 10_000)
    other.close
    wait_until("the other one is closed") { closed == 2 }

    assert_empty(@errors)
  end

  def test_an_idle_connection_has_no_task
    serve { text }
    sessions = Array.new(5) { http2.tap(&:get) }
    2.times do
      wait_until("they are idle") { tasks_of_connections.zero? }

      sessions.each { |session| assert_equal(200, session.get.status) }
    end
  end

  def test_an_idle_connection_is_told_of_its_end
    serve(limits: { idle: 0.2 }) { text }
    session = http2
    session.get

    assert_equal(0, session.finish)
    assert_equal([[1, 0]], session.goaways)
  end

  def test_stop_ends_connections_when_their_streams_have_ended
    serve_behind_gate
    session = http2
    id = session.request
    wait_for_begun
    stopper = Thread.new { stop_server }
    last, = session.wait_for(:goaway).unpack("N")

    assert_equal(0x7fffffff, last)
    assert_equal(200, session.get("/more").status) # it was on its way
    session.send_frame(:ping, TestSupport::HTTP2Client::ACK, 0, session.wait_for(:ping, 0))
    session.wait_for(:goaway)
    session.request("/more") # it is too late
    open_gate

    assert_equal(200, session.reply(id).status)
    assert_equal(0, session.finish)
    assert_equal([[0x7fffffff, 0], [3, 0]], session.goaways)
    stopper.join
  end

  def test_what_a_client_sends_while_the_connection_ends
    serve_behind_gate
    session = http2
    id = session.request
    wait_for_begun
    stopper = Thread.new { stop_server }
    session.wait_for(:goaway)
    session.send_frame(:ping, TestSupport::HTTP2Client::ACK, 0, session.wait_for(:ping, 0))
    open_gate

    assert_equal(200, session.reply(id).status)
    assert_equal(0, session.finish)
    3.times { session.send_frame(:window, 0, 0, [1].pack("N")) && sleep(0.02) }
    session.io.close_write

    assert_equal("", session.io.read)
    stopper.join
  end

  def test_the_access_log
    reader, writer = pipe
    serve(access_log: writer) { text }
    http2.get("/a")

    assert_match(%r{"GET /a HTTP/2" 200 5 }, reader.gets)
  end

  def test_the_status_that_the_client_has_got
    reader, writer = pipe
    serve(access_log: writer) do |env|
      case env["PATH_INFO"]
      when "/header" then [200, { "x" => "a\r\nb" }, []]
      when "/task" then Heddle.spawn { raise "of a task" } && sleep
      else raise "of the application"
      end
    end
    session = http2
    statuses = %w[/header /task /raise].map { |path| session.get(path).status }

    assert_equal([500] * 3, statuses)
    assert_equal([500] * 3, Array.new(3) { reader.gets[/2" (\d+)/, 1].to_i })
    assert_equal([0, 3], @server.counts[:responses].values_at("2xx", "5xx"))
    assert_equal(3, @errors.size)
  end

  # -- other people's clients ------------------------------------------------------------------------------------------

  def program?(name) = ENV.fetch("PATH").split(":").any? { |folder| File.executable?(File.join(folder, name)) }

  def run_client(*command, **)
    skip("#{command.first} is not here") unless program?(command.first)
    out, status = Open3.capture2e("timeout", "-k", "1", "30", *command, **)

    assert_predicate(status, :success?, out)
    out
  end

  def test_curl
    serve { |env| text(200, env["rack.input"].read) }
    url = "http://127.0.0.1:#{@server.port}/"
    body = "b" * 300_000

    assert_equal(" 2", run_client("curl", "-s", "--http2-prior-knowledge", "-w", " %{http_version}", url))
    said = run_client("curl", "-s", "--http2-prior-knowledge", "--data-binary", "@-", url, stdin_data: body)

    assert_equal(body, said)
  end

  def test_curl_and_tls
    serve(bind: tls_address) { text }
    url = "https://127.0.0.1:#{@server.port}/"

    assert_equal("hello 2hello 2", run_client("curl", "-sk", "--http2", "-w", " %{http_version}", url, url))
  end

  def test_nghttp
    serve { |env| text(200, "x" * (env["PATH_INFO"] == "/big" ? 200_000 : 10)) }
    url = "http://127.0.0.1:#{@server.port}"
    said = run_client("nghttp", "-n", "-v", "--no-dep", "#{url}/", "#{url}/big")

    assert_equal(2, said.scan(":status: 200").size)
  end

  def test_h2load
    serve { |env| text(200, "x" * (env["PATH_INFO"] == "/big" ? 200_000 : 10)) }
    url = "http://127.0.0.1:#{@server.port}"
    [["/", 500], ["/big", 40]].each do |path, number|
      said = run_client("h2load", "-n#{number}", "-c4", "-m10", "#{url}#{path}")

      assert_match(/ #{number} succeeded, 0 failed, 0 errored, 0 timeout/, said)
    end
  end

  def test_httpx
    missing = TestSupport::Clients.load("httpx")
    skip(missing) if missing
    serve { |env| text(200, env["rack.input"].read) }
    url = "http://127.0.0.1:#{@server.port}/"
    client = HTTPX.with(fallback_protocol: "h2")
    client.wrap do |http|
      replies = http.get(url, url) << http.post(url, body: "abc")

      assert_equal([["", "2.0"], ["", "2.0"], ["abc", "2.0"]],
                   replies.map { |reply| [reply.body.to_s, reply.version] })
    end
  end
end
