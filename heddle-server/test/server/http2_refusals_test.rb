# frozen_string_literal: true

# bin/test: takes 20 s, 0.6 of a core

require_relative "../test_helper"
require "support/http2_client"
require "support/rack_server"

# What Heddle::Server refuses of an HTTP/2 client, and that nobody else is held up by it. The first two tables are the
# most telling cases of h2spec.
contract "ServerHTTP2Refusals" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  unless defined?(CODES)
    CODES = { none: 0, protocol: 1, flow_control: 3, stream_closed: 5, frame_size: 6, refused: 7, compression: 9,
              calm: 11 }.freeze
    # Frames that end the connection, and the code of the GOAWAY.
    CONNECTION_ERRORS = {
      "data on stream 0" => [[:data, 1, 0, "a"], :protocol],
      "data on an idle stream" => [[:data, 1, 1, "a"], :protocol],
      "headers on stream 0" => [[:headers, 5, 0, "\x82"], :protocol],
      "headers on a stream of the server" => [[:headers, 5, 2, "\x82"], :protocol],
      "headers that are no HPACK" => [[:headers, 5, 1, "\xff\xff\xff\xff\xff\xff"], :compression],
      "headers that are cut off" => [[:headers, 5, 1, "\x00\x05ab"], :compression],
      "an integer that does not end" => [[:headers, 5, 1, "\x82\x84\x86\xff#{"\xff" * 16_000}".b], :compression],
      "an integer of many bytes" => [[:headers, 5, 1, "\x82\x84\x86\xff#{"\x80" * 20}\x01".b], :compression],
      "the length of a text that does not end" => [[:headers, 5, 1, "\x82\x00\x7f#{"\xff" * 9000}".b], :compression],
      "three changes of the table" => [[:headers, 5, 1, "\x20\x20\x20\x82\x84\x86"], :compression],
      "a change of the table behind a field" => [[:headers, 5, 1, "\x82\x20\x84\x86"], :compression],
      "headers of an unknown index" => [[:headers, 5, 1, "\xff\x10"], :compression],
      "a table that is too large" => [[:headers, 5, 1, "\x3f\xff\xff\x7f\x82"], :compression],
      "padding that is longer than the frame" => [[:headers, 13, 1, "\x09\x82"], :protocol],
      "padding without a length" => [[:headers, 13, 1, ""], :frame_size],
      "a priority that is cut off" => [[:headers, 37, 1, "\0\0"], :frame_size],
      "a priority of stream 0" => [[:priority, 0, 0, "\0\0\0\0\1"], :protocol],
      "a priority of a wrong length" => [[:priority, 0, 1, "\0\0\0\0"], :frame_size],
      "a reset of stream 0" => [[:reset, 0, 0, "\0\0\0\1"], :protocol],
      "a reset of an idle stream" => [[:reset, 0, 1, "\0\0\0\1"], :protocol],
      "a reset of a wrong length" => [[:reset, 0, 1, "\0\0\1"], :frame_size],
      "settings of a stream" => [[:settings, 0, 1, ""], :protocol],
      "settings of a wrong length" => [[:settings, 0, 0, "\0\1\0"], :frame_size],
      "an answer to settings that says more" => [[:settings, 1, 0, "\0\1\0\0\0\0"], :frame_size],
      "a window that is too large" => [[:settings, 0, 0, [4, 0x80000000].pack("nN")], :flow_control],
      "frames that are too small" => [[:settings, 0, 0, [5, 100].pack("nN")], :protocol],
      "a push that is neither yes nor no" => [[:settings, 0, 0, [2, 2].pack("nN")], :protocol],
      "a promise" => [[:push, 4, 1, "\0\0\0\2\x82"], :protocol],
      "a ping of a stream" => [[:ping, 0, 1, "12345678"], :protocol],
      "a ping of a wrong length" => [[:ping, 0, 0, "1234567"], :frame_size],
      "a GOAWAY of a stream" => [[:goaway, 0, 1, "\0" * 8], :protocol],
      "a GOAWAY that is cut off" => [[:goaway, 0, 0, "\0" * 4], :frame_size],
      "a window of an idle stream" => [[:window, 0, 1, "\0\0\0\1"], :protocol],
      "a window that grows by nothing" => [[:window, 0, 0, "\0\0\0\0"], :protocol],
      "a window that grows beyond its bounds" => [[:window, 0, 0, "\x7f\xff\xff\xff"], :flow_control],
      "a window of a wrong length" => [[:window, 0, 0, "\0\0\1"], :frame_size],
      "a continuation of nothing" => [[:continuation, 4, 1, "\x82"], :protocol],
      "a frame that is too long" => [[:data, 0, 1, "a" * 16_385], :frame_size]
    }.freeze
    # Header fields for which a request is refused: what is said, instead of or after the usual ones.
    MALFORMED = {
      "a name in capitals" => [[%w[X-One 1]]],
      "a name with a space" => [[["x one", "1"]]],
      "no name" => [[["", "1"]]],
      "a value with a line feed" => [[["x", "a\nb: c"]]],
      "a value with a NUL" => [[["x", "a\0b"]]],
      "a value with a space at its end" => [[["x", "a "]]],
      "an unknown pseudo-header" => [[], [%w[:x 1]]],
      "a pseudo-header of answers" => [[], [%w[:status 200]]],
      "a pseudo-header after others" => [[%w[x 1], %w[:path /]], [], [":path"]],
      "a pseudo-header twice" => [[], [%w[:path /]]],
      "no method" => [[], [], [":method"]],
      "an empty method" => [[], [[":method", ""]], [":method"]],
      "a method with a space" => [[], [[":method", "GET / HTTP/1.1\" 200"]], [":method"]],
      "no scheme" => [[], [], [":scheme"]],
      "no path" => [[], [], [":path"]],
      "an empty path" => [[], [[":path", ""]], [":path"]],
      "a path that is none" => [[], [%w[:path a]], [":path"]],
      "a path with a space" => [[], [[":path", "/a b"]], [":path"]],
      "a header of connections" => [[%w[connection keep-alive]]],
      "an encoding of HTTP/1" => [[%w[transfer-encoding chunked]]],
      "an upgrade" => [[%w[upgrade websocket]]],
      "an encoding that it would take" => [[%w[te gzip]]],
      "another host" => [[%w[host other]]],
      "two hosts" => [[%w[host localhost], %w[host localhost]]],
      "a length that is no number" => [[%w[content-length +1]]],
      "two lengths" => [[%w[content-length 0], %w[content-length 0]]],
      "a length and no body" => [[%w[content-length 5]]]
    }.freeze
  end

  CONNECTION_ERRORS.each do |what, (frame, code)|
    define_method("test_#{what.tr(" /'.", "_")}") do
      serve { text }
      session = http2
      session.send_frame(*frame)

      assert_equal(CODES.fetch(code), session.finish)
      assert_equal(200, http2.get.status)
      assert_empty(@errors)
    end
  end

  MALFORMED.each do |what, (fields, pseudo, without)|
    define_method("test_#{what.tr(" /'.", "_")}") do
      called = []
      serve { |env| called.push(env["PATH_INFO"]) && text }
      session = http2
      usual = session.fields("/").reject { |name,| without&.include?(name) }
      reply = session.reply(session.request(fields: usual + (pseudo || []) + fields))

      assert_equal([nil, CODES[:protocol]], [reply.status, reply.reset])
      assert_equal(200, session.get("/good").status)
      assert_equal(["/good"], called)
      assert_empty(@errors)
    end
  end

  def test_requests_that_are_answered_with_a_status
    serve(limits: { body_size: 1000, headers: 10 }) { text }
    session = http2
    usual = session.fields("/")

    { 501 => [%w[:method CONNECT], [":authority", "a:80"]],
      400 => [*usual[0..2], [":authority", "a/b"]],
      413 => usual + [%w[content-length 1001]],
      431 => usual + Array.new(11) { |i| ["x#{i}", "1"] } }.each do |status, fields|
      assert_equal(status, session.get(fields: fields, open: status == 413).status)
    end
    assert_equal(200, session.get.status)
  end

  def test_lengths_that_are_wrong
    serve { |env| text(200, env["rack.input"].read) }
    session = http2
    [["ab", true], ["abcd", true], ["abcd", false]].each do |body, last|
      id = session.request(open: true, content_length: "3")
      session.data(id, body, last: last)

      assert_equal(CODES[:protocol], session.reply(id).reset)
    end
    id = session.request(open: true, content_length: "3")
    session.send_frame(:headers, 5, id, session.block([%w[x y]]))

    assert_equal(CODES[:protocol], session.reply(id).reset)
    assert_empty(@errors)
  end

  def test_trailers_that_are_wrong
    serve { |env| text(200, env["rack.input"].read) }
    session = http2
    [[5, [%w[:path /]]], [5, [%w[X y]]], [4, [%w[x y]]]].each do |flags, fields|
      id = session.request(open: true)
      session.send_frame(:headers, flags, id, session.block(fields))

      assert_equal(CODES[:protocol], session.reply(id).reset)
    end
  end

  def test_frames_for_a_stream_that_has_ended
    serve { text }
    session = http2
    id = session.request
    session.reply(id)
    session.send_frame(:window, 0, id, "\0\0\0\1") # these two may have been on their way
    session.send_frame(:reset, 0, id, "\0\0\0\1")
    session.data(id, "abc")
    session.wait_for(:reset)

    assert_equal(CODES[:stream_closed], session.reply(id).reset)
    id = session.request
    session.reply(id)
    session.send_frame(:headers, 5, id, session.block(session.fields))

    assert_equal(CODES[:stream_closed], session.finish)
  end

  def test_a_stream_that_is_older_than_another
    serve { text }
    session = http2
    session.send_frame(:headers, 5, 5, session.block(session.fields))
    session.reply(5)
    session.send_frame(:headers, 5, 3, session.block(session.fields))

    assert_equal(CODES[:stream_closed], session.finish)
  end

  # Answers come when @held is closed, or for requests for which the block is true.
  def serve_late
    @held = Thread::Queue.new
    serve do |env|
      @held.pop unless block_given? && yield(env)
      text
    end
  end

  def teardown
    @held&.close
    super
  end

  def test_data_after_the_end
    serve_late
    session = http2
    id = session.request
    session.data(id, "abc")

    assert_equal(CODES[:stream_closed], session.reply(id).reset)
  end

  # (RFC 9113, 5.4.1: it must be closed. The request goes on, as one does whose client has gone.)
  def test_an_error_of_the_connection_ends_it_while_a_request_runs
    begun = Thread::Queue.new
    serve_late { begun << :begun and false }
    session = http2
    session.request
    begun.pop
    session.send_frame(:data, 0, 0, "a")

    assert_equal(CODES[:protocol], session.finish)
    assert_equal(1, @server.counts[:busy])
    @held.close
    wait_until("the end of the request") { @server.counts[:busy].zero? }
  end

  def test_another_frame_amid_headers
    serve { text }
    session = http2
    session.send_frame(:headers, 1, 1, session.block(session.fields))
    session.send_frame(:ping, 0, 0, "12345678")

    assert_equal(CODES[:protocol], session.finish)
  end

  def test_a_window_of_a_stream_that_grows_beyond_its_bounds
    serve_late
    session = http2
    id = session.request
    session.send_frame(:window, 0, id, "\x7f\xff\xff\xff")

    assert_predicate(session.reply(id).reset, :positive?)
    @held.close

    assert_equal(200, session.get.status)
  end

  def test_more_data_than_allowed
    serve_late { |env| env["REQUEST_METHOD"] == "GET" }
    session = http2
    id = session.request(open: true)
    17.times { session.data(id, "a" * 16_384) }

    assert_equal(CODES[:flow_control], session.reply(id).reset)
    assert_equal(200, session.get.status)
    4.times { session.request(open: true).then { |other| 16.times { session.data(other, "a" * 16_384) } } }

    assert_equal(CODES[:flow_control], session.finish)
  end

  def test_frames_that_are_not_known_are_ignored
    serve { text }
    session = http2
    session.send_frame(:unknown, 0xff, 0, "abc")
    session.send_frame(:settings, 0, 0, [0x42, 1].pack("nN"))
    session.send_frame(16, 0, 0, "\0\0\0\1u=1")

    assert_equal(200, session.get.status)
  end

  def test_a_preface_that_goes_wrong
    serve { text }
    [["PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 505], ["PRI * HTTP/2.0\r\n", 505]].each do |bytes, status|
      socket = connect
      socket.write(bytes)
      socket.close_write

      assert_equal(status, answer(socket).status)
    end
    session = http2(greet: false)
    session.io.write(Protocol::HTTP2::CONNECTION_PREFACE)
    session.send_frame(:ping, 0, 0, "12345678")

    assert_equal(CODES[:protocol], session.finish)
  end

  # -- bounds ----------------------------------------------------------------------------------------------------------

  def test_too_many_streams
    serve_behind_gate(limits: { streams: 3 })
    session = http2
    ids = Array.new(5) { session.request }
    refused = ids.last(2).map { |id| session.reply(id) }

    assert_equal([[nil, CODES[:refused]]] * 2, refused.map { |reply| [reply.status, reply.reset] })
    open_gate

    assert_equal([200] * 3, ids.first(3).map { |id| session.reply(id).status })
    assert_equal(200, session.get.status)
  end

  def test_too_many_requests
    serve_behind_gate(limits: { requests: 1 })
    session = http2
    first = session.request
    wait_for_begun
    refused = session.get

    assert_equal([503, "1"], [refused.status, refused.headers["retry-after"]])
    open_gate

    assert_equal(200, session.reply(first).status)
  end

  # Frames that a client sends faster than they can be of use to it.
  unless defined?(FLOODS)
    FLOODS = {
      "pings" => ->(session, _) { session.frame(:ping, 0, 0, "12345678") },
      "settings" => ->(session, _) { session.frame(:settings, 0, 0, "") },
      "priorities" => ->(session, _) { session.frame(:priority, 0, 1, "\0\0\0\0\1") },
      "small windows" => ->(session, _) { session.frame(:window, 0, 0, "\0\0\0\1") },
      "large windows" => ->(session, _) { session.frame(:window, 0, 0, [10_000].pack("N")) },
      "malformed headers" => lambda do |session, number|
        session.frame(:headers, 5, (2 * number) + 1, "\x82\x84\x86\x00\x01 \x01a")
      end,
      "data that is too long" => lambda do |session, number|
        id = (2 * number) + 1
        session.frame(:headers, 4, id, "\x83\x84\x86\x41\x01a\x0f\x0d\x011") + session.frame(:data, 1, id, "ab")
      end,
      "unknown frames" => ->(session, _) { session.frame(:unknown, 0, 0, "") },
      "requests and resets" => lambda do |session, number|
        id = (2 * number) + 1
        session.frame(:headers, 5, id, "\x82\x84\x86\x41\x01a") + session.frame(:reset, 0, id, "\0\0\0\x08")
      end,
      "empty data" => lambda do |session, number|
        number.zero? ? session.frame(:headers, 4, 1, "\x83\x84\x86\x41\x01a") : session.frame(:data, 0, 1, "")
      end
    }.freeze
  end

  FLOODS.each do |what, frame|
    define_method("test_a_flood_of_#{what.tr(" ", "_")}") do
      serve { |env| (!env["rack.input"].read.empty? || sleep(0.01)) && text }
      session = http2
      other = http2
      flood = Thread.new do
        30.times { |i| session.io.write(Array.new(100) { |j| frame.call(session, (100 * i) + j) }.join) }
      rescue SystemCallError
        nil # it was cut off
      end

      assert_equal(200, other.get.status)
      assert_equal(CODES[:calm], session.finish)
      assert_equal(200, other.get.status)
      assert_empty(@errors)
    ensure
      flood.join
    end
  end

  # RFC 9113, 6.9: that is what a client of data has to send. HAProxy sends both for each answer.
  def test_windows_that_follow_data_are_no_flood
    serve { text(200, "a" * 10) }
    session = http2
    update = session.frame(:window, 0, 0, [10].pack("N"))
    600.times do |i|
      ids = [(4 * i) + 1, (4 * i) + 3]
      session.io.write(ids.map { |id| session.frame(:headers, 5, id, "\x82\x84\x86\x41\x01a") + update }.join)

      assert_equal([200, 200], ids.map { |id| session.reply(id).status })
      session.io.write(ids.map { |id| session.frame(:window, 0, id, [10].pack("N")) }.join)
    end

    assert_equal(200, session.get.status)
    assert_empty(session.goaways)
  end

  def test_a_flood_of_continuations
    serve { text }
    session = http2
    session.send_frame(:headers, 1, 1, session.block(session.fields))
    20.times { session.send_frame(:continuation, 0, 1, "") }

    assert_equal(CODES[:protocol], session.finish)
  end

  # A few bytes that stand for many: each 0xbe is the field that was added to the table before.
  def test_fields_that_grow_when_they_are_decompressed
    serve { text }
    session = http2
    block = session.block(session.fields(x: "a" * 4000))
    session.send_frame(:headers, 5, 1, block + ("\xbe".b * 5))

    assert_equal(200, session.reply(1).status)
    session.send_frame(:headers, 5, 3, session.block(session.fields) + ("\xbe".b * 12))

    assert_equal(431, session.reply(3).status)
    session.send_frame(:headers, 5, 5, session.block(session.fields) + ("\xbe".b * 10_000))

    assert_equal(CODES[:calm], session.finish)
  end

  def test_headers_that_are_too_large
    serve { text }
    session = http2
    block = session.block(session.fields) + (("\x00\x01x\x7f\x81\x7d".b + ("a" * 16_000)) * 3)
    parts = block.scan(/.{1,16384}/mn)
    session.send_frame(:headers, 1, 1, parts.shift)
    parts.each { |part| session.send_frame(:continuation, part.equal?(parts.last) ? 4 : 0, 1, part) }

    assert_equal(CODES[:calm], session.finish)
  end

  def test_a_client_that_sends_and_does_not_read
    serve(limits: { stall: 0.5 }) { text(200, "a" * 60_000) }
    session = http2(settings: { 4 => 0x7fffffff })
    session.send_frame(:window, 0, 0, [0x7fff0000 - 65_535].pack("N"))
    wait_until("it is cut off") do
      session.request
      false
    rescue SystemCallError
      true
    end

    assert_equal(200, http2.get.status)
  end

  def test_a_client_that_opens_no_window
    closed = Thread::Queue.new
    body = Class.new do
      define_method(:each) { |&block| loop { block.call("a" * 10_000) } }
      define_method(:close) { closed << true }
    end
    serve(limits: { stall: 0.3 }) { |env| env["PATH_INFO"] == "/" ? text : [200, {}, body.new] }
    session = http2
    reply = session.get("/endless")

    assert_equal([200, 65_535, 8], [reply.status, reply.body.bytesize, reply.reset])
    assert(closed.pop)
    assert_empty(@errors)
  end

  def test_a_body_that_does_not_come
    serve(limits: { stall: 0.3 }) { |env| text(200, env["rack.input"].read) }
    session = http2

    assert_equal(408, session.get(open: true, content_length: "3").status)
    assert_empty(@errors)
  end

  def test_a_body_that_is_too_large
    serve(limits: { body_size: 1000 }) { |env| text(200, env["rack.input"].read) }
    session = http2
    id = session.request(open: true)
    session.data(id, "a" * 1001)

    assert_equal(413, session.reply(id).status)
    assert_equal(200, session.get(content_length: "0", body: "").status)
  end

  def test_a_frame_that_comes_too_slowly
    serve(limits: { stall: 0.3, head_time: 0.3 }) { text }
    session = http2
    session.io.write("\0\0\x05")

    assert_nil(session.finish)
    preface = connect
    preface.write("PRI * HT")

    assert_equal(408, answer(preface).status)
  end

  # What begins as HTTP/2 does may be a request of HTTP/1: it has the time of one head, and so is refused before a head
  # that begins when its second part comes.
  def test_a_head_that_comes_slowly_and_begins_as_http2
    in_time(1, 4, 16, 64) do |seconds|
      serve(limits: { head_time: seconds }) { text }
      slow = connect
      slow.write("P") && sleep(0.5 * seconds)
      later = connect
      later.write("GET / HT")
      slow.write("OST / HTTP/1.1\r\nhost: a\r\n")
      first, = IO.select([slow, later])

      assert_equal([408, 408], [slow, later].map { |socket| answer(socket).status })
      stop_server
      first == [slow]
    end
  end

  # The two sides share a table of headers, which each block changes.
  def test_headers_that_are_refused_count_for_those_that_follow
    serve do |env|
      sleep(0.2) if env["PATH_INFO"] == "/slow"
      text(200, "#{env["HTTP_X_A"]} #{env["HTTP_X_B"]}")
    end
    session = http2
    session.get("/", x_a: "first")
    id = session.request("/slow")
    session.send_frame(:headers, 5, id, session.block([%w[x-b second]]))

    assert_equal(Protocol::HTTP2::STREAM_CLOSED, session.reply(id).reset)
    assert_equal("first second", session.get("/", x_a: "first", x_b: "second").body)
  end

  # A client that allows less for a moment has emptied its own.
  def test_a_table_of_headers_that_was_small_between_two_answers
    serve { text(200, "hello", "x-kept": "a" * 100) }
    [[[0, 4096]], [[0], [4096]], [[200], [0], [500]], [[0], [1000]], [[20], [0]]].each do |frames|
      session = http2
      2.times { session.get }
      frames.each { |sizes| session.send_frame(:settings, 0, 0, sizes.map { |size| [1, size].pack("nN") }.join) }
      session.decoder.table_size = frames.flatten.min

      2.times { assert_equal("a" * 100, session.get.headers["x-kept"]) }
      assert_equal(frames.last.last, session.decoder.table_size)
    end
  end

  # The server has such a table, too.
  def test_a_table_of_headers_that_a_client_wants_large
    count = 0
    serve { [200, { "x-a" => "#{count += 1} #{"a" * 1000}" }, []] }
    { 0xffffffff => 4096, 100 => 100 }.each do |wanted, size|
      session = http2(settings: { 1 => wanted })
      answers = Array.new(10) { session.get.headers["x-a"].to_i }

      assert_equal(((count - 9)..count).to_a, answers)
      assert_equal(size, session.decoder.table_size)
      assert_operator(session.decoder.compute_current_table_size, :<=, size)
    end
  end

  def test_data_that_is_refused_takes_no_room_of_the_connection
    serve { |env| text(200, env["rack.input"].read.bytesize.to_s) }
    session = http2
    fields = session.fields("/", method: "POST", content_length: "5")
    80.times do # more than the window of the connection
      id = session.request(fields:, open: true)
      session.data(id, "a" * 16_000)

      assert_equal(Protocol::HTTP2::PROTOCOL_ERROR, session.reply(id).reset)
    end

    assert_equal("5", session.reply(session.request(body: "hello")).body)
  end
end
