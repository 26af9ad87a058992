# frozen_string_literal: true

# bin/test: takes 20 s, 0.5 of a core

require_relative "../test_helper"
require "net/http"
require "support/clients"
require "support/serve_program"

# `heddle serve --control`: health checks and figures, also of several workers, and what signals mean then.
class ServeControlTest < HeddleTest
  EXE = File.expand_path("../../../exe/heddle", __dir__)
  APP = <<~RUBY
    run(lambda do |env|
      File.write("begun", "")
      Heddle.blocking { sleep(4) } if env["PATH_INFO"] == "/block"
      sleep(Float(env["QUERY_STRING"])) unless env["QUERY_STRING"].empty?
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    end)
  RUBY

  def setup
    super
    missing = %w[protocol-rack protocol-http1].filter_map do |gem|
      TestSupport::Clients.load(gem, gem.tr("-", "/"))
    end.first
    skip(missing) if missing
    @dir = tempdir
    File.write(File.join(@dir, "config.ru"), APP)
  end

  def teardown
    @program&.close
    super
  end

  def serve(*arguments, workers: 0)
    ready = workers.zero? ? { until_said: /health and metrics/ } : { until_said: /is ready/, times: workers }
    @program = TestSupport::ServeProgram.new(*ruby_command, EXE, "serve", "--bind", "tcp://127.0.0.1:0", "--control",
                                             "tcp://127.0.0.1:0", "--workers", workers.to_s, *arguments,
                                             chdir: @dir, env: { "TMPDIR" => @dir }, **ready)
    @port = @program.said.join[%r{health and metrics on tcp://[\d.]+:(\d+)}, 1].to_i
    @program
  end

  def control(path, patience = 20)
    Net::HTTP.start("127.0.0.1", @port, max_retries: 0, read_timeout: patience) { |http| http.get(path) }
  end

  # (A worker may take the connection just before it stands still: then there is no answer.)
  def alive?
    control("/live", 2).code == "200"
  rescue Net::ReadTimeout
    false
  end

  # (A worker that stops closes a connection on which nothing has come for half a second.)
  def ready
    control("/ready").code
  rescue EOFError
    retry
  end

  # @return [Hash{String => Float}]
  def metrics
    lines = control("/metrics").body.lines.grep_v(/^#/)
    lines.to_h { |line| line.split.then { |name, value| [name, Float(value)] } }
  end

  def ask(path = "/?0.5")
    begun = File.join(@dir, "begun")
    FileUtils.rm_f(begun)
    Thread.new { @program.get(path) }.tap { wait_until("the request has begun") { File.exist?(begun) } }
  end

  def folders = Dir.glob(File.join(@dir, "heddle-serve-*"))

  def refused?
    TCPSocket.new("127.0.0.1", @program.port).close
    false
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET
    true
  end

  def to_all(signal) = Process.kill(signal, -@program.pid)

  def test_one_process
    serve
    @program.get

    assert_equal(%w[200 200 404], %w[/live /ready /other].map { |path| control(path).code })
    assert_equal([1.0, 0.0, 0.0], metrics.values_at("heddle_server_responses_total{class=\"2xx\"}",
                                                    "heddle_server_responses_total{class=\"5xx\"}",
                                                    "heddle_server_requests"))
    assert_operator(metrics["heddle_polls_total"], :>, 0)
    asking = ask

    assert_equal([1.0, 1.0],
                 metrics.values_at("heddle_server_requests", "heddle_server_connections{state=\"busy\"}"))
    asking.value
  end

  def test_a_delay_after_term
    [0, 2].each do |workers|
      serve("--drain-delay", "60", workers: workers)

      assert_equal("200", ready)
      @program.signal(:TERM)
      wait_until("it is not ready") { ready == "503" }

      assert_equal(%w[200 200], [@program.get.code, control("/live").code])
      @program.signal(:TERM) # ends the delay

      assert_predicate(@program.wait, :success?)
    end
  end

  def test_a_drain_is_told
    serve
    asking = ask
    @program.signal(:TERM)
    wait_until("it is not ready") { ready == "503" }

    assert_equal("200", asking.value.code)
    assert_predicate(@program.wait, :success?)
  end

  def test_ctrl_c_does_not_wait_for_the_delay
    serve("--drain-delay", "60", workers: 2)
    asking = ask
    to_all(:INT) # as a terminal does

    assert_equal("200", asking.value.code)
    assert_predicate(@program.wait, :success?)
  end

  def test_clients_that_come_while_the_workers_drain_are_refused
    serve(workers: 2)
    asking = ask("/?2")
    @program.signal(:TERM)
    wait_until("nobody listens") { refused? }

    assert_equal("200", asking.value.code)
    assert_predicate(@program.wait, :success?)
  end

  def test_a_worker_whose_loop_stands_still
    serve(workers: 2)

    assert_predicate(self, :alive?)
    asking = Thread.new { @program.get("/block") }
    wait_until("it is not alive") { !alive? }

    assert_equal("200", asking.value.code)
    wait_until("it is alive") { alive? }
  end

  # KillMode=control-group
  def test_systemd_sends_term_to_all_processes
    serve(workers: 2)
    asking = ask
    to_all(:TERM)

    assert_equal("200", asking.value.code)
    assert_predicate(@program.wait, :success?)
  end

  def test_figures_of_all_workers
    serve(workers: 3)
    12.times { @program.get }
    found = metrics

    answered = (0..2).map { |number| "heddle_server_responses_total{worker=\"#{number}\",class=\"2xx\"}" }

    assert_equal(12, found.values_at(*answered).sum)
    assert_equal(3, found.keys.grep(/heddle_loop_latency_seconds_bucket\{worker="\d",le="\+Inf"\}/).size)
    assert_equal(1, control("/metrics").body.scan("# TYPE heddle_timers gauge").size)
    @program.signal(:TERM)
    @program.wait

    assert_empty(folders)
  end

  def test_a_worker_that_was_killed
    serve(workers: 2)
    Process.kill(:KILL, Integer(@program.get.body))
    @program.wait_for(/is ready/, 3)

    wait_until("both tell their figures") { metrics.keys.grep(/heddle_timers/).size == 2 }
    @program.signal(:TERM)
    @program.wait

    assert_empty(folders)
  end

  # What a killed worker has left behind cannot be removed: another one does so at the same time, or never.
  def test_figures_are_told_whatever_else_is_in_the_folder
    serve(workers: 2)
    Dir.mkdir(File.join(folders.first, "1.sock"))

    assert_equal(2, metrics.keys.grep(/heddle_timers/).size)
    @program.signal(:INT)
    @program.wait
  end

  def test_it_stays_ready_while_the_workers_are_replaced
    { HUP: [/is ready/, 4], USR2: [/is ready/, 6] }.each do |signal, (text, times)|
      serve("--drain-delay", "60", workers: 2) unless @port
      codes = []
      done = false
      asking = Thread.new { codes << ready until done }
      @program.signal(signal)
      @program.wait_for(text, times)
      wait_until("the old ones have gone") { metrics.keys.grep(/heddle_timers/).size == 2 }
      done = true
      asking.join

      assert_equal(["200"], codes.uniq, signal.to_s)
    end
    @program.signal(:INT)
    @program.wait

    assert_empty(folders)
  end
end
