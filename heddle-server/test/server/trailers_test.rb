# frozen_string_literal: true

require_relative "../test_helper"
require "support/http2_client"
require "support/rack_server"

# Fields behind the body of an answer: env["heddle.trailers"].
contract "ServerTrailers" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  def test_http1
    serve do |env|
      with_trailers(env) do |counted|
        case env["PATH_INFO"]
        when "/array" then [counted.call("ab"), counted.call("c")]
        when "/each" then Enumerator.new { |parts| %w[ab c].each { |part| parts << counted.call(part) } }
        when "/thread"
          ->(out) { Thread.new { %w[ab c].each { |part| out.write(counted.call(part)) } && out.close } }
        end
      end
    end
    %w[/array /each /thread].each do |path|
      socket = connect
      2.times do
        socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
        answer = socket.gets("0\r\n") + socket.gets("\r\n\r\n")

        assert_match(/^transfer-encoding: chunked\r$/, answer)
        refute_match(/^content-length/, answer)
        assert_match(/c\r\n0\r\nx-parts: 2\r\nserver-timing: a;dur=1\r\n\r\n\z/, answer)
      end
    end
  end

  # HTTP/1.0 has no chunks; HEAD, and an answer without a body, have nothing before them.
  def test_trailers_that_have_no_place
    serve { |env| with_trailers(env) { [] }.then { |_, *rest| [Integer(env["QUERY_STRING"]), *rest] } }
    ["GET /?200 HTTP/1.0", "HEAD /?200 HTTP/1.1", "GET /?304 HTTP/1.1"].each do |line|
      socket = connect
      socket.write("#{line}\r\nhost: a\r\nconnection: close\r\n\r\n")

      refute_match(/x-parts/, socket.read)
    end
  end

  # The answer has no end then, so that no client takes it for a whole one.
  def test_trailers_that_must_not_be_sent
    answers = [{ "content-length" => "1" }, { "set-cookie" => "a=b" }, { "a b" => "c" }, { "x" => "a\r\nb: c" },
               -> { raise("no trailers") }]
    serve do |env|
      env["heddle.trailers"] = answers.fetch(Integer(env["QUERY_STRING"]))
      [200, {}, env["PATH_INFO"] == "/thread" ? ->(out) { Thread.new { end_badly(out) } } : %w[abc].each]
    end
    answers.each_index do |index|
      ["/", "/thread"].each do |path|
        socket = connect
        socket.write("GET #{path}?#{index} HTTP/1.1\r\nhost: a\r\n\r\n")

        assert_match(/\r\nabc\r\n\z/, read_to_end(socket), [path, index].inspect)
      end
    end

    assert_equal(2 * answers.size, @errors.size)
  end

  def test_trailers_that_are_none
    serve { |env| (env["heddle.trailers"] = "x: y") && text(200, "abc") }

    assert_equal(500, get.status)
    assert_match(/heddle.trailers must be a Hash or a Proc/, @errors.pop.message)
  end

  def test_http2
    serve do |env|
      env["heddle.trailers"] = -> { { "grpc-status" => 0, "X-One" => "1" } }
      [200, {}, env["PATH_INFO"] == "/array" ? %w[ab c] : %w[ab c].each]
    end
    session = http2
    %w[/array /each].each do |path|
      reply = session.get(path)

      assert_equal([200, "abc", "0", "1", nil],
                   [reply.status, reply.body, *reply.headers.to_h.values_at("grpc-status", "x-one", "content-length")])
    end
  end

  def test_http2_and_trailers_that_must_not_be_sent
    serve do |env|
      env["heddle.trailers"] = { "connection" => "close" }
      text(200, "abc")
    end
    session = http2

    assert_equal(2, session.get.reset)
    assert_equal("connection cannot be a trailer", @errors.pop.message)
    assert_empty(session.goaways)
  end

  private

  def with_trailers(env)
    count = 0
    env["heddle.trailers"] = -> { { "x-parts" => count, "Server-Timing" => " a;dur=1" } }
    [200, { "content-type" => "text/plain" }, yield(->(part) { (count += 1) && part })]
  end

  def end_badly(out)
    out.write("abc")
    out.close
  rescue ArgumentError, RuntimeError
    nil # the server says it
  end

  def read_to_end(socket)
    bytes = +""
    loop { bytes << socket.readpartial(4096) }
  rescue EOFError, Errno::ECONNRESET
    bytes
  end
end
