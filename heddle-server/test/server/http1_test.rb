# frozen_string_literal: true

# bin/test: takes 10 s, 0.4 of a core

require_relative "../test_helper"
require "support/rack_server"

# What an HTTP/1 client sees of Heddle::Server (RFC 9112).
contract "ServerHTTP1" do
  include TestSupport::RackServer

  def test_one_request
    serve { |env| text(200, "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]} #{env["QUERY_STRING"]}") }
    answer = get("/a/b?c=d")

    assert_equal([200, "GET /a/b c=d", "12"], [answer.status, answer.body, answer.headers["content-length"]])
    assert_in_delta(Time.now, Time.httpdate(answer.headers["date"]), 60)
  end

  def test_a_connection_stays_for_the_next_request
    count = 0
    serve { text(200, (count += 1).to_s) }
    socket = connect

    assert_equal(%w[1 2 3], Array.new(3) { get("/", socket).body })
  end

  def test_requests_that_come_together_are_answered_in_order
    serve { |env| text(200, env["PATH_INFO"]) }
    socket = connect
    socket.write("GET /1 HTTP/1.1\r\nhost: a\r\n\r\nPOST /2 HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc" \
                 "GET /3 HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal(%w[/1 /2 /3], Array.new(3) { answer(socket).body })
  end

  def test_connection_close
    serve { text }
    socket = connect

    assert_equal("close", get("/", socket, headers: "\nconnection: close").headers["connection"])
    assert_closed(socket)
  end

  # As under Puma: the header is for this server as well as for the client.
  def test_an_application_that_ends_the_connection
    serve { text(200, "bye", connection: "close") }
    socket = connect
    answer = get("/", socket)

    assert_equal(%w[close bye], [answer.headers["connection"], answer.body])
    assert_closed(socket)
  end

  # A close while bytes wait to be read would cut the answer off. The application answers when the client has sent more:
  # the kernel may take the whole answer at once.
  def test_connection_close_and_more_requests
    sent = Thread::Queue.new
    serve { sent.pop && text(200, "a" * 3_000_000) }
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    more = Thread.new do
      loop { socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") && (sent << true) && sleep(0.001) }
    rescue SystemCallError, IOError
      nil
    end
    sleep(0.3) # until the server waits for room, or lingers

    assert_equal(3_000_000, answer(socket).body.bytesize)
  ensure
    more&.kill&.join
  end

  # Bytes that a client has sent before it could know of the end reset nothing. The reset would come with the first
  # write, and the second one would fail.
  def test_what_a_client_sends_while_the_connection_ends
    serve { |env| env["PATH_INFO"] == "/" ? text : [200, {}, Enumerator.new { |out| out << "hello" }] }
    ["/ HTTP/1.1\nhost: a\nconnection: close", "/ HTTP/1.0", "/stream HTTP/1.0",
     "/stream HTTP/1.1\nhost: a\nconnection: close"].each do |request|
      socket = connect

      assert_equal("hello", ask(socket, "GET #{request}").body)
      assert_equal("", socket.read)
      3.times { socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") && sleep(0.02) }
      socket.close_write

      assert_equal("", socket.read)
    end
  end

  def test_a_connection_that_ends_waits_for_no_client_for_long
    serve { text }
    socket = connect
    get("/", socket, headers: "\nconnection: close")
    wait_until("it is closed") { @server.counts[:busy].zero? }

    assert_equal("", socket.read)
  end

  def test_http_1_0_ends_with_its_answer
    serve { text }
    socket = connect

    assert_equal("hello", ask(socket, "GET / HTTP/1.0").body)
    assert_closed(socket)
  end

  def test_http_1_0_with_keep_alive
    serve { text }
    socket = connect
    2.times do
      answer = ask(socket, "GET / HTTP/1.0\nconnection: keep-alive")

      assert_equal(%w[hello keep-alive], [answer.body, answer.headers["connection"]])
    end
  end

  def test_a_request_without_a_name_of_the_server
    serve { |env| text(200, env["SERVER_NAME"]) }

    assert_equal("localhost", ask(connect, "GET / HTTP/1.0").body)
    assert_equal("localhost", ask(connect, "GET / HTTP/1.1\nhost:").body)
  end

  def test_head_has_no_body
    serve { text }
    socket = connect
    socket.write("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal("5", answer(socket, head: true).headers["content-length"])
    assert_equal("hello", get("/", socket).body)
  end

  # Rack::Head drops the body, with Rails and Sinatra: its length is not known then (RFC 9110, 8.6).
  def test_head_without_a_body_tells_no_length
    serve { |env| text(200, "hello").tap { |answer| answer[2] = [] if env["REQUEST_METHOD"] == "HEAD" } }
    socket = connect
    socket.write("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_equal([200, nil], answer(socket, head: true).then { |one| [one.status, one.headers["content-length"]] })
    assert_equal("hello", get("/", socket).body)
  end

  def test_answers_without_a_body
    serve { |env| [Integer(env["PATH_INFO"].delete("/")), {}, []] }
    socket = connect
    [204, 304].each do |status|
      socket.write("GET /#{status} HTTP/1.1\r\nhost: a\r\n\r\n")
      answer = answer(socket, head: true)

      assert_equal(status, answer.status)
      refute(answer.headers.key?("content-length"))
      refute(answer.headers.key?("transfer-encoding"))
    end
  end

  def test_a_body_with_its_length
    serve { |env| text(200, env["rack.input"].read) }
    socket = connect
    ["", "a", "b" * 100_000].each do |body|
      assert_equal(body, ask(socket, "POST / HTTP/1.1\nhost: a\ncontent-length: #{body.size}", body).body) if body != ""
    end
  end

  def test_a_body_in_chunks
    serve { |env| text(200, env["rack.input"].read) }
    socket = connect
    2.times do
      body = ask(socket, "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked",
                 "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n").body

      assert_equal("abcdefg", body)
    end
  end

  # Rails reads a body without a length only where it is said to come in chunks.
  def test_a_body_of_unknown_length_is_said_to_come_in_chunks
    serve { |env| text(200, env.values_at("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING").inspect) }
    socket = connect
    bodies = { "content-length: 3" => "abc", "transfer-encoding: chunked" => "3\r\nabc\r\n0\r\n\r\n", "x: y" => "" }
    said = bodies.map { |header, body| ask(socket, "POST / HTTP/1.1\nhost: a\n#{header}", body).body }

    assert_equal([["3", nil], [nil, "chunked"], [nil, nil]].map(&:inspect), said)
  end

  def test_each_of_a_body_gives_what_was_not_read_before
    serve do |env|
      input = env["rack.input"]
      first = [input.gets, input.read(2)]
      rest = +""
      2.times { input.each { |part| rest << part } }
      text(200, [*first, rest, input.read].inspect)
    end
    body = "one\ntwo\nthree"
    chunks = body.scan(/.{1,5}/m).map { |chunk| "#{chunk.bytesize}\r\n#{chunk}\r\n" }.join
    { "content-length: 13" => body, "transfer-encoding: chunked" => "#{chunks}0\r\n\r\n", "x: y" => "" }
      .each do |header, sent|
        expected = sent.empty? ? [nil, nil, "", ""] : ["one\n", "tw", "o\nthree", ""]

        assert_equal(expected.inspect, ask(connect, "POST / HTTP/1.1\nhost: a\n#{header}", sent).body)
      end
  end

  def test_a_header_that_is_longer_than_a_first_line_may_be
    serve { |env| text(200, env["HTTP_COOKIE"].size.to_s) }

    assert_equal("30000", get("/", headers: "\ncookie: #{"a" * 30_000}").body)
  end

  # It is for the application to ignore it (RFC 9110, 14.2).
  def test_a_range_that_is_none
    serve { |env| text(200, env["HTTP_RANGE"]) }

    ["bytes=5-2", "bytes", "pages=1 to 3"].each { |range| assert_equal(range, get(headers: "\nrange: #{range}").body) }
  end

  def test_trailers
    serve do |env|
      env["rack.input"].read
      headers = env["protocol.http.request"].headers
      text(200, [headers.header.to_a.map(&:first), headers.trailer.to_a].inspect)
    end
    answer = ask(connect, "POST / HTTP/1.1\nhost: a\nx-a: b\ntransfer-encoding: chunked",
                 "3\r\nabc\r\n0\r\nserver-timing: a;dur=1\r\nx-checksum: 7\r\n\r\n")

    assert_equal([["x-a"], [["server-timing", "a;dur=1"], %w[x-checksum 7]]].inspect, answer.body)
  end

  # What frames a request or says for whom it is was read before; another length means no other end.
  def test_trailers_that_mean_nothing_behind_the_body
    serve do |env|
      body = env["rack.input"].read
      headers = env["protocol.http.request"].headers
      text(200, [body, env["HTTP_HOST"], headers["content-length"], headers.trailer.to_a].inspect)
    end
    socket = connect
    trailers = ["content-length: 40", "Transfer-Encoding: chunked", "host: other", "Content-Type: a", "x_a: 1", "x: 2 "]
    2.times do
      answer = ask(socket, "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked",
                   "3\r\nabc\r\n0\r\n#{trailers.join("\r\n")}\r\n\r\n")

      assert_equal([200, ["abc", "a", nil, [%w[x 2]]].inspect], [answer.status, answer.body])
    end
  end

  def test_a_body_that_comes_slowly_is_read_as_it_comes
    heard = Thread::Queue.new
    serve do |env|
      2.times { heard << env["rack.input"].read(3) }
      text
    end
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabc")

    assert_equal("abc", heard.pop)
    socket.write("def")

    assert_equal("def", heard.pop)
    assert_equal(200, answer(socket).status)
  end

  def test_a_body_that_the_application_does_not_read
    serve { text }
    socket = connect

    assert_equal(200, ask(socket, "POST / HTTP/1.1\nhost: a\ncontent-length: 5", "abcde").status)
    assert_equal(200, get("/", socket).status)
  end

  def test_a_large_body_that_the_application_does_not_read_ends_the_connection
    serve(limits: { linger_size: 1000 }) { text }
    socket = connect

    assert_equal(200, ask(socket, "POST / HTTP/1.1\nhost: a\ncontent-length: 100000", "a" * 3000).status)
    assert_closed(socket)
  end

  def test_expect_100_continue
    serve { |env| text(200, env["rack.input"].read) }
    socket = connect
    socket.write("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")

    assert_equal("HTTP/1.1 100 Continue\r\n", socket.gets("\r\n"))
    assert_equal("\r\n", socket.gets("\r\n"))
    socket.write("abc")

    assert_equal("abc", answer(socket).body)
  end

  def test_expect_100_continue_when_the_body_is_not_wanted
    serve { text(403) }
    socket = connect
    answer = ask(socket, "POST / HTTP/1.1\nhost: a\nexpect: 100-continue\ncontent-length: 3")

    assert_equal([403, "close"], [answer.status, answer.headers["connection"]])
    assert_closed(socket)
  end

  # Else the client would send its next request there, and get no answer.
  def test_an_answer_says_that_the_connection_ends_with_it
    serve(limits: { linger_size: 1000 }) { |env| text(200, env["rack.input"].read(Integer(env["QUERY_STRING"])).to_s) }
    said = [[0, 2000], [2000, 2000], [0, 900]].map do |read, size|
      ask(connect, "POST /?#{read} HTTP/1.1\nhost: a\ncontent-length: #{size}", "a" * size).headers["connection"]
    end

    assert_equal(["close", nil, nil], said)
    empty = ask(connect, "POST /?3 HTTP/1.1\nhost: a\nexpect: 100-continue\ncontent-length: 0")

    assert_nil(empty.headers["connection"])
  end

  def test_a_body_of_unknown_length_goes_out_in_chunks_as_it_is_made
    go_on = Thread::Queue.new
    body = Enumerator.new do |yielder|
      3.times { |i| yielder << "part #{i}" << (go_on.pop && "") }
    end
    serve { [200, {}, body] }
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    nil until socket.gets("\r\n") == "\r\n"
    3.times do |i|
      assert_equal(["6\r\n", "part #{i}\r\n"], [socket.gets("\r\n"), socket.gets("\r\n")])
      go_on << true
    end

    assert_equal("0\r\n\r\n", socket.readpartial(10))
    assert_nil(socket.wait_readable(0.01))
  end

  def test_a_streaming_body
    serve { [200, {}, ->(stream) { stream.write("a") && (stream << "b") && stream.flush && stream.close }] }
    socket = connect

    2.times { assert_equal("ab", get("/", socket).body) }
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

    assert_equal("ABCDEF", ask(connect, "POST / HTTP/1.1\nhost: a\ncontent-length: 6", "abcdef").body)
  end

  def test_a_streaming_body_ends_with_the_connection_for_old_clients
    serve { [200, {}, ->(stream) { stream.write("abc") && stream.close }] }

    answer = ask(connect, "GET / HTTP/1.0\nconnection: keep-alive")

    assert_equal("abc", answer.body)
    refute(answer.headers.key?("connection"))
  end

  def test_server_sent_events
    go_on = Thread::Queue.new
    serve do
      [200, { "content-type" => "text/event-stream" }, lambda do |stream|
        while (event = go_on.pop)
          stream.write("data: #{event}\n\n")
        end
        stream.close
      end]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    nil until socket.gets("\r\n") == "\r\n"
    2.times do |i|
      go_on << i

      assert_equal(["9\r\n", "data: #{i}\n\n\r\n"], [socket.gets("\r\n"), socket.read(11)])
    end
    go_on.close

    assert_equal("0\r\n", socket.gets("\r\n"))
  end

  def test_the_body_is_closed_once_also_when_the_client_has_gone
    closed = 0
    endless = Class.new do
      define_method(:each) { |&block| loop { block.call("a" * 100_000) } }
      define_method(:close) { closed += 1 }
    end
    serve { [200, {}, endless.new] }
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    socket.readpartial(1000)
    socket.close
    wait_until("the body is closed") { closed == 1 }

    assert_empty(@errors)
  end

  def test_a_file
    path = File.join(tempdir, "file")
    File.write(path, "x" * 200_000)
    served = Struct.new(:to_path) do
      def each = yield(File.read(to_path))
    end
    serve { [200, {}, served.new(path)] }
    answer = get

    assert_equal(["200000", 200_000], [answer.headers["content-length"], answer.body.size])
  end

  def test_headers_of_the_request_are_in_the_environment
    env = nil
    serve { |given| (env = given) && text }
    get("/", headers: "\nx-one: 1\ncookie: a=b\ncontent-type: text/x\nx-one: 2")

    assert_equal(["1,2", "a=b", "text/x", "localhost"],
                 env.values_at("HTTP_X_ONE", "HTTP_COOKIE", "CONTENT_TYPE", "HTTP_HOST"))
    assert_equal(["127.0.0.1", "HTTP/1.1", "http"],
                 env.values_at("REMOTE_ADDR", "SERVER_PROTOCOL", "rack.url_scheme"))
  end

  def test_headers_with_an_underscore_are_left_out
    env = nil
    serve { |given| (env = given) && text }
    get("/", headers: "\nx_real_ip: 1\nx-real-ip: 2")

    assert_equal("2", env["HTTP_X_REAL_IP"])
  end

  def test_headers_with_several_values
    serve { [200, { "set-cookie" => %w[a=1 b=2] }, []] }

    assert_equal("a=1, b=2", get.headers["set-cookie"])
  end

  def test_the_absolute_form_of_a_target
    serve { |env| text(200, "#{env["HTTP_HOST"]} #{env["PATH_INFO"]}") }

    assert_equal("example.com:81 /x", ask(connect, "GET http://example.com:81/x HTTP/1.1\nhost: other").body)
  end

  def test_an_error_of_the_application
    serve { raise(ArgumentError, "secret") }
    socket = connect
    2.times do
      answer = get("/", socket)

      assert_equal([500, "Internal Server Error"], [answer.status, answer.body])
      assert_equal("secret", @errors.pop.message)
    end
  end

  def test_an_error_in_the_midst_of_a_body_cuts_the_answer_off
    serve { [200, {}, Enumerator.new { |yielder| (yielder << "abc") && raise("oh") }] }
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_match(/3\r\nabc\r\n\z/, socket.read)
    assert_equal("oh", @errors.pop.message)
  end

  def test_a_header_that_would_split_the_answer
    serve { [200, { "x" => "a\r\nset-cookie: b=c" }, []] }

    assert_equal(500, get.status)
    assert_match(/header/i, @errors.pop.message)
  end

  def test_a_wrong_content_length_of_the_application
    serve { [200, { "content-length" => "3" }, ["four"]] }

    assert_equal(500, get.status)
    assert_match(/content.length/i, @errors.pop.message)
  end

  def test_a_wrong_content_length_that_shows_late
    serve { [200, { "content-length" => "300000" }, ["a" * 200_000, "b"]] }
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    assert_match(/\r\n\r\na+b?\z/, socket.read)
    assert_match(/content.length/i, @errors.pop.message)
  end

  def test_requests_run_side_by_side
    here = there = 0
    serve do
      there = [there, here += 1].max
      sleep(0.2)
      here -= 1
      text
    end
    sockets = Array.new(20) { connect }
    sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n") }

    assert_equal([200], sockets.map { |socket| answer(socket).status }.uniq)
    assert_equal(20, there)
  end

  def test_what_the_application_spawns_is_waited_for_and_fails_the_request_alone
    done = Thread::Queue.new
    serve do |env|
      Heddle.spawn { sleep(0.05) && (done << env["PATH_INFO"]) }
      if env["PATH_INFO"] == "/bad"
        Heddle.spawn { raise("in a task") }
        sleep(60)
      end
      text
    end

    assert_equal(500, get("/bad").status)
    assert_equal([200, "/good"], [get("/good").status, done.pop])
    assert_equal("in a task", @errors.pop.message)
  end

  def test_an_interim_response
    serve do |env|
      env["protocol.http.request"].send_interim_response(103, { "link" => "</a>; rel=preload" })
      text
    end
    socket = connect

    assert_equal([103, "</a>; rel=preload"], early_hints_of(socket))
    assert_equal([200, "hello"], answer(socket).to_a.values_at(0, 2))
    assert_equal(200, ask(connect, "GET / HTTP/1.0").status) # (which knows none)
  end

  def early_hints_of(socket)
    socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    answer(socket, head: true).then { |interim| [interim.status, interim.headers["link"]] }
  end

  def test_an_interim_response_with_a_header_that_is_none
    serve do |env|
      refused = [{ "link" => "a\r\nb: c" }, { "link" => "a", "b c" => "d" }].count do |headers|
        env["protocol.http.request"].send_interim_response(103, headers)
      rescue StandardError
        true
      end
      text(200, refused.to_s)
    end
    socket = connect

    2.times { assert_equal([200, "2"], get("/", socket).to_a.values_at(0, 2)) }
  end

  def test_hijack
    serve do |env|
      io = env["rack.hijack"].call
      io.write("HTTP/1.1 101 Switching Protocols\r\n\r\n")
      Heddle.spawn do
        while (line = io.gets)
          io.write(line.upcase)
        end
      ensure
        io.close
      end
      [200, {}, []]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\nfirst\n")

    assert_equal("HTTP/1.1 101 Switching Protocols\r\n\r\n", 2.times.map { socket.gets("\r\n") }.join)
    assert_equal("FIRST\n", socket.gets)
    socket.write("second\n")

    assert_equal("SECOND\n", socket.gets)
    socket.close_write

    assert_closed(socket)
  end

  def test_upgrade_by_a_streaming_body
    serve do |env|
      assert_equal("echo", env["rack.protocol"]&.first || env["HTTP_UPGRADE"])
      [101, { "rack.protocol" => "echo" }, lambda do |stream|
        stream.write(stream.read(5).upcase)
        stream.flush
        stream.close
      end]
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\nhello")
    head = socket.gets("\r\n\r\n")

    assert_match(%r{\AHTTP/1.1 101 .*^upgrade: echo\r$}m, head)
    assert_equal("HELLO", socket.read(5))
    assert_closed(socket)
  end
end
