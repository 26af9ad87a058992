# frozen_string_literal: true

# bin/test: takes 40 s, 1 core

require_relative "../test_helper"
require "support/clients"
require "support/servers/web_server"

# Heddle::Rack::Middleware and Puma's plugin in servers as they are (the application is support/rack/config.ru).
contract "RackServers" do
  file = File.expand_path("../support/rack/config.ru", __dir__)

  heddle_only "it is about tasks"

  def teardown
    @server&.then { |server| end_server(server) }
    super
  end

  # Asks the server to end, because Passenger's agents are in groups of their own. Puma may hang at its end on Ruby 3.3
  # and 3.4, also without Heddle: its thread closes a pipe to which the handler of the signal writes, and waits for ever
  # (rb_notify_fd_close_wait; mended in Ruby 4.0 by ruby/ruby#13684). There it is killed.
  def end_server(server)
    return if @name.start_with?("puma") && !ruby_at_least?("4.0")

    server.signal(:TERM)
    server.wait
  ensure
    server.close
  end

  define_method(:start) do |name|
    @name = name
    missing = TestSupport::WebServer.missing(name)
    missing ||= %w[warden rack-timeout].filter_map { |gem| TestSupport::Clients.load(gem, "rack") }.first
    skip(missing) if missing
    @port = free_port
    @server = started(name) do
      TestSupport::WebServer.start(name, ruby_command, file, folder: @folder = tempdir, port: @port,
                                                             env: { "HEDDLE_BACKEND" => backend })
    end
  end

  # Passenger gives its own processes some seconds to start, and no option says how many.
  def started(name)
    tries ||= 0
    yield
  rescue RuntimeError => e
    raise unless name == :passenger && e.message.include?("StartTimeout") && (tries += 1) < 5

    retry
  end

  def get(path) = Net::HTTP.get_response("127.0.0.1", path, @port)

  def said = [*@server.said, *Dir[File.join(@folder, "*.log")].map { |file| File.read(file) }].join

  def assert_answer(text, path, status = "200")
    answer = get(path)

    assert_equal([status, text], [answer.code, answer.body], said)
    answer
  end

  def assert_fan_out
    assert_answer("0,1,2,3,4,5,6,7,8,9", "/fan")
    assert_answer("done", "/waits")
    assert_equal("inside", assert_answer("/locals", "/locals")["x-inside"])
  end

  def assert_errors
    assert_equal(get("/plain_error").code, get("/error").code)
    assert_answer("unauthenticated", "/private", "401")
    assert_answer("unauthenticated", "/private_task", "401")
    assert_answer("Rack::Timeout::RequestTimeoutError", "/slow", "503")
    wait_until("the end of what was timed out") { said.include?("slow ended") }

    assert_answer("done", "/waits")
  end

  def assert_parts
    parts = []
    Net::HTTP.start("127.0.0.1", @port) do |http|
      http.request_get("/parts") { |answer| answer.read_body { |part| parts << part } }
    end

    assert_equal(["part 2", "part 1", "part 0"], parts.join.lines(chomp: true))
    assert_operator(parts.size, :>, 1) # they came one by one
    wait_until("the close of the body") { said.include?("body closed") }
  end

  def assert_hijacks
    assert_answer("hijacked", "/hijack")
    assert_answer("hijacked", "/partial")
  end

  def kgio? = Gem::Specification.find_all_by_name("unicorn").last&.dependencies&.any? { |one| one.name == "kgio" }

  %i[puma puma_plugin].each do |name|
    define_method("test_#{name}") do
      start(name)

      assert_fan_out
      assert_errors

      assert_parts
      assert_hijacks
      assert_answer("streamed", "/stream")
      assert_answer("thrown", "/async")
      pages = Array.new(5) { Thread.new { get("/fan").body } }.map(&:value)

      assert_equal(["0,1,2,3,4,5,6,7,8,9"], pages.uniq)
    end
  end

  def test_unicorn
    skip("kgio, a gem of this Unicorn, crashes on Ruby 4.0 (also without Heddle)") if kgio? && ruby_at_least?("4.0")
    start(:unicorn)

    assert_fan_out
    assert_errors
    assert_parts
    assert_hijacks
  end

  def test_passenger
    start(:passenger)

    assert_fan_out
    assert_errors
    assert_parts
    assert_hijacks
  end
end
