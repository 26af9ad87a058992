# frozen_string_literal: true

require_relative "../test_helper"
require "support/http2_client"
require "support/rack_server"
require "support/serve_case"
require "support/slices_at_lines"

# heddle serve --time-slice: a request that computes does not hold up the others.
class ServeTimeSlicesTest < HeddleTest
  include TestSupport::ServeCase

  APPLICATION = <<~RUBY
    clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    done = false
    run(lambda do |env|
      if env["PATH_INFO"] == "/compute"
        File.write("begun", "")
        ends = clock.call + 60
        1 until done || clock.call > ends
      else
        done = true
      end
      [200, { "content-type" => "text/plain" }, [done.inspect]]
    end)
  RUBY

  def test_a_request_that_computes_lets_others_run
    write("config.ru", APPLICATION)
    program = serve("--time-slice", "0.005")
    computing = Thread.new { program.get("/compute").body }
    wait_until_begun

    assert_equal("true", program.get("/done").body)
    assert_equal("true", computing.value)
    assert_ends(program)
  end

  def test_wrong_lengths
    outcome = run_command(*ruby_command, EXE, "serve", "--time-slice", "20", chdir: @dir)

    assert_equal(2, outcome.status.exitstatus)
    assert_match(/invalid argument: --time-slice 20 \(must be from 0.001 to 10\)$/, outcome.err)
  end
end

# Time slices that end at every line at which one may end.
contract "ServerSlicesAtLines" do
  include TestSupport::RackServer
  include TestSupport::HTTP2Client

  # @return [Array] an answer whose fields and parts show to which request it belongs
  def answer_to(env)
    path = env["PATH_INFO"]
    body = Enumerator.new { |parts| 3.times { |part| parts << "#{path} #{part};" } }
    [200, { "content-type" => "text/plain", "x-path" => path, "x-of#{path.tr("/", "-")}" => path }, body]
  end

  def right?(path, headers, body)
    body == Array.new(3) { |part| "#{path} #{part};" }.join &&
      headers.values_at("x-path", "x-of#{path.tr("/", "-")}") == [path, path]
  end

  def test_streams_of_a_connection
    serve(lint: false) { |env| answer_to(env) }
    session = http2
    wrong = TestSupport::SlicesAtLines.while_in do
      Array.new(5) do
        paths = Array.new(12) { |number| "/#{number}" }
        ids = paths.map { |path| session.request(path) }
        paths.zip(ids.map { |id| session.reply(id) }).reject { |path, reply| right?(path, reply.headers, reply.body) }
      end
    end

    assert_empty(wrong.flatten(1))
  end

  def test_connections_of_http1
    serve(lint: false) { |env| answer_to(env) }
    sockets = Array.new(12) { connect }
    wrong = TestSupport::SlicesAtLines.while_in do
      Array.new(5) do
        sockets.each_with_index { |socket, number| socket.write("GET /#{number} HTTP/1.1\r\nHost: a\r\n\r\n") }
        sockets.each_with_index.reject do |socket, number|
          reply = answer(socket)
          right?("/#{number}", reply.headers, reply.body)
        end
      end
    end

    assert_empty(wrong.flatten(1))
  end
end
