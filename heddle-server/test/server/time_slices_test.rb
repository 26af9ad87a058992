# frozen_string_literal: true

require_relative "../test_helper"
require "fileutils"
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
        ends = clock.call + Float(env["QUERY_STRING"])
        1 until done || clock.call > ends
      else
        done = true
      end
      [200, { "content-type" => "text/plain" }, [done.inspect]]
    end)
  RUBY

  # By name: the arguments, and HEDDLE_TIME_SLICE.
  { "as_the_command_line_says" => [%w[--time-slice 0.005], "0"],
    "as_the_environment_says" => [[], "0.002"],
    "by_default" => [[], nil] }.each do |name, (arguments, environment)|
    define_method("test_a_request_that_computes_lets_others_run_#{name}") do
      assert_equal("true", beside_computing(60, *arguments, environment:))
    end
  end

  def test_none
    assert_equal("false", beside_computing(0.3, environment: "0"))
    assert_equal("false", beside_computing(0.3, "--time-slice", "0", environment: "0.005"))
  end

  def test_wrong_lengths
    outcome = run_command(*ruby_command, EXE, "serve", "--time-slice", "20", chdir: @dir)

    assert_equal(2, outcome.status.exitstatus)
    assert_match(/invalid argument: --time-slice 20 \(must be from 0.001 to 10\)$/, outcome.err)
  end

  private

  # @return [String] whether another request has run while one computes for this time
  def beside_computing(seconds, *arguments, environment:)
    write("config.ru", APPLICATION)
    FileUtils.rm_f(path("begun"))
    program = serve(*arguments, env: { "HEDDLE_TIME_SLICE" => environment })
    computing = Thread.new { program.get("/compute?#{seconds}").body }
    wait_until_begun

    assert_equal("true", program.get("/done").body)
    assert_ends(program)
    computing.value
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
