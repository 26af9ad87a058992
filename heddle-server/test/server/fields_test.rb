# frozen_string_literal: true

# bin/test: takes 3 s, 0.5 of a core

require_relative "../test_helper"
require "support/http2_client"
require "support/rack_server"

# Which header fields are taken from a client and from the application, and what they amount to as a whole.
contract "ServerFields" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  # @return [Array<Integer>] of answers to a request with these lines
  def status_of(lines, body = "") = ask(connect, lines, body).status

  # Others trim more than spaces and tabs, or take other characters for them: then they see another request.
  def test_white_space_is_a_space_or_a_tab
    serve { |env| text(200, env["rack.input"].read + env["HTTP_X"].to_s) }
    ["\v", "\f", "\x1c", "\x7f"].each do |odd|
      ["content-length: 3#{odd}", "content-length:#{odd}3", "transfer-encoding: chunked#{odd}",
       "transfer-encoding: chunked\ncontent-length: 3#{odd}", "connection: close#{odd}", "x: a#{odd}b"].each do |field|
        assert_equal(400, status_of("POST / HTTP/1.1\nhost: a\n#{field}", "abc"), field.inspect)
      end
    end

    assert_equal("abcd e", ask(connect, "POST / HTTP/1.1\nhost: a\nx:\t d e\t \ncontent-length: \t3\t", "abc").body)
  end

  def test_fields_of_http2_that_reset_their_stream_alone
    go_on = Thread::Queue.new
    serve { |env| (env["PATH_INFO"] == "/held" ? go_on.pop : env["rack.input"].read) && text }
    session = http2
    held = session.request("/held")
    fields = [["\xff", "a"], ["x\xc3\xa9", "a"], ["x", "a\x01b"], ["x", "a\x7f"], ["x", " a"], ["x", "a\t"], ["", "a"]]
    fields.each do |field|
      reply = session.get(fields: session.fields + [field])

      assert_equal([nil, Protocol::HTTP2::PROTOCOL_ERROR], [reply.status, reply.reset], field.inspect)
      id = session.request(open: true)
      session.send_frame(:headers, 5, id, session.block([field]))

      assert_equal(Protocol::HTTP2::PROTOCOL_ERROR, session.reply(id).reset, "as a trailer: #{field.inspect}")
    end
    go_on << true

    assert_equal([200, 200], [session.reply(held).status, session.get(x: "a\tb \xc3\xa9".b).status])
    assert_empty(@errors)
  end

  # @return [Array<Integer>] of both versions
  def statuses(path) = [get(path).status, http2.get(path).status]

  def test_fields_that_the_application_sends
    values = { "/trimmed" => " \t a b \t", "/empty" => "  ", "/nul" => "a\0", "/tab" => "a\tb", "/escape" => "\e[0m",
               "/delete" => "a\x7f" }
    names = { "/space" => "x y", "/colon" => "x:", "/bytes" => "x\xff", "/letters" => "xé", "/none" => "" }
    serve(lint: false) do |env|
      path = env["PATH_INFO"]
      [200, names.key?(path) ? { names[path] => "a" } : { "x" => values.fetch(path) }, ["hello"]]
    end

    { "/trimmed" => "a b", "/empty" => "", "/tab" => "a\tb" }.each do |path, value|
      assert_equal([value] * 2, [get(path).headers["x"].to_s, http2.get(path).headers["x"].to_s], path)
    end
    [*values.keys.grep(/nul|escape|delete/), *names.keys].each do |path|
      assert_equal([500, 500], statuses(path), path)
      assert_equal([true] * 2, Array.new(2) { @errors.pop.message.include?("header") }, path)
    end
  end

  # RFC 9113, 8.2.3: a cookie may come in parts. As a whole they are bounded by their size.
  def test_a_cookie_in_many_parts
    serve { |env| text(200, env["HTTP_COOKIE"].split("; ").size.to_s) }
    session = http2
    crumbs = ->(count) { session.fields + Array.new(count) { |i| ["cookie", "c#{i}=v"] } }

    assert_equal("300", session.get(fields: crumbs.call(300)).body)
    assert_equal(431, session.get(fields: crumbs.call(900)).status)
    assert_equal("300", get(headers: "\ncookie: #{crumbs.call(300).drop(4).map(&:last).join("; ")}").body)
  end

  def chunked(chunks, trailers = "") = "#{chunks}0\r\n#{trailers}\r\n"

  # Each of the lines may be short.
  def test_lines_of_chunks_and_trailers_are_bounded_as_a_whole
    serve { |env| text(200, env["rack.input"].read.bytesize.to_s) }
    post = "POST / HTTP/1.1\nhost: a\ntransfer-encoding: chunked"

    assert_equal("100", ask(connect, post, chunked("1;a=b\r\nx\r\n" * 100)).body)
    assert_equal(400, status_of(post, chunked("1;#{"a" * 1000}\r\nx\r\n" * 40)))
    assert_equal(400, status_of(post, chunked("#{"0" * 1000}1\r\nx\r\n" * 40)))
    assert_equal(200, status_of(post, chunked("", Array.new(90) { |i| "x#{i}: a\r\n" }.join)))
    assert_equal(431, status_of(post, chunked("", Array.new(101) { |i| "x#{i}: a\r\n" }.join)))
    assert_equal(431, status_of("#{post}\n#{Array.new(60) { |i| "y#{i}: a" }.join("\n")}",
                                chunked("", Array.new(60) { |i| "x#{i}: a\r\n" }.join)))
    assert_equal(431, status_of("#{post}\ny: #{"a" * 20_000}", chunked("", "x: #{"a" * 6000}\r\n" * 3)))
  end

  def test_trailers_of_http2_are_bounded
    serve { |env| text(200, env["rack.input"].read) }
    session = http2
    id = session.request(open: true)
    session.send_frame(:headers, 5, id, session.block(Array.new(200) { |i| ["x#{i}", "a"] }))

    assert_equal(Protocol::HTTP2::PROTOCOL_ERROR, session.reply(id).reset)
    assert_equal(200, session.get.status)
  end

  def test_trailers_of_http2_count_with_the_headers
    serve { |env| text(200, env["rack.input"].read) }
    session = http2
    few, many = [10, 60].map { |number| Array.new(number) { |i| ["x#{i}", "a"] } }
    large = [["y", "a" * 20_000]]
    ended = [[few, many], [many, few], [many, many], [large, large]].map do |head, trailers|
      id = session.request(open: true, fields: session.fields("/", method: "POST") + head)
      session.send_frame(:headers, 5, id, session.block(trailers))
      session.reply(id).then { |reply| reply.reset || reply.status }
    end

    assert_equal([200, 200, *[Protocol::HTTP2::PROTOCOL_ERROR] * 2], ended)
    assert_equal(200, session.get.status)
  end

  # RFC 9110, 7.8
  def test_an_upgrade_that_the_client_has_not_asked_for
    upgrade = ->(stream) { stream.write("up") && stream.close }
    serve(lint: false) do |env|
      asked = env["rack.protocol"] || env["HTTP_UPGRADE"]
      asked || env["PATH_INFO"] == "/any" ? [101, { "rack.protocol" => "echo" }, upgrade] : text
    end
    asked = ["HTTP/1.0\nhost: a\nupgrade: echo\nconnection: upgrade", "HTTP/1.1\nhost: a\nupgrade: echo",
             "HTTP/1.1\nhost: a\nupgrade: echo\nconnection: keep-alive"]
    asked.each do |request|
      assert_equal(200, status_of("GET / #{request}"))
      assert_equal(500, status_of("GET /any #{request}"))
      assert_match(/status 101/, @errors.pop.message)
    end
    socket = connect
    socket.write("GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\nconnection: keep-alive, Upgrade\r\n\r\n")

    assert_match(/\AHTTP.1.1 101 /, socket.read)
  end

  def test_the_address_of_a_client
    folder = tempdir
    serve(bind: ["tcp://[::]:0", "unix:#{folder}/socket"]) { |env| text(200, env["REMOTE_ADDR"]) }
    unix = UNIXSocket.new("#{folder}/socket").tap { |socket| @sockets << socket }

    assert_equal(["127.0.0.1"] * 2, [get.body, get("/", unix).body])
    assert_equal("::1", get("/", TCPSocket.new("::1", @server.port).tap { |socket| @sockets << socket }).body)
  end
end
