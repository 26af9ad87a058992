# frozen_string_literal: true

# bin/test: takes 10 s, 0.6 of a core

require_relative "../test_helper"
require "support/clients"
require "support/servers/grpc"

# grpc with its adapter, in a process of its own (its threads never end), and a server in another one.
class GrpcAdapterTest < HeddleTest
  BACKENDS = Heddle.backends.select { |one| one[:available] }.map { |one| one[:name] }

  def before_setup
    @missing = TestSupport::Clients.load("grpc")
    @server = TestSupport::Servers::Grpc.start unless @missing
    super
  end

  def setup
    super
    skip(@missing) if @missing
  end

  PRELUDE = <<~RUBY
    $VERBOSE = false # (grpc is full of warnings)
    require "heddle"
    require "support/servers/grpc_process"
    require "support/servers/pause"
    require "heddle/adapters/grpc" unless ENV["WITHOUT"]

    STUB = LateService::Stub.new("127.0.0.1:\#{ARGV.fetch(0)}", :this_channel_is_insecure)
    def text(*words) = LateService::Text.new(words.join(" "))
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def ask(number, seconds, **) = STUB.ask(text(number, seconds), **).text

    # @return [Array] the value of the block, and the longest time without a tick
    def watched
      Heddle.run do
        STUB.ask(text(0, 0)) # connects
        last = now
        longest = 0
        Heddle.every(0.01) { longest = [longest, now - last].max.tap { last = now } }
        value = yield
        [value, [longest, now - last].max]
      end
    end

    # The server answers nothing before another task has run.
    # @return [Array] the value of the block, and whether it has waited for the server
    def overlapping
      Heddle.run do
        STUB.ask(text(0, 0)) # connects
        asking = waits = nil
        TestSupport::Servers::Pause.during(Integer(ARGV.fetch(1))) do
          asking = Heddle.spawn { yield }
          10.times { sleep(0.001) }
          waits = !asking.finished?
        end
        [asking.value, waits]
      end
    end
  RUBY

  # Runs the code with each backend, and gives the block what it prints, as Ruby.
  def each_backend(code, without: nil)
    BACKENDS.each do |name|
      env = { "HEDDLE_BACKEND" => name, "WITHOUT" => without }.compact
      arguments = [@server.port, @server.pid].map(&:to_s)
      outcome = run_ruby("#{PRELUDE}\n#{code}", *arguments, env: env, gems: true, options: ["-W0"])

      assert_predicate(outcome, :success?, outcome.err)
      yield eval(outcome.out) # rubocop:disable Security/Eval
    end
  end

  def assert_overlap(outcome, expected)
    value, waited = outcome

    assert_equal(expected, value)
    assert(waited, "it is answered by nobody")
  end

  # So that the adapter can be dropped when the library asks the scheduler.
  def test_without_the_adapter
    each_backend("p(watched { ask(1, 0.3) })", without: "1") { |_, hold| assert_operator(hold, :>, 0.25) }
  end

  def test_others_run
    each_backend("p(overlapping { ask(1, 0.1) })") { |outcome| assert_overlap(outcome, "1") }
  end

  # The server answers none before it has all of them.
  def test_fifty_unary_calls
    each_backend('p(overlapping { Heddle.map(0...50) { |number| ask(number, "fifty") } })') do |outcome|
      assert_overlap(outcome, [*0...50].map(&:to_s))
    end
  end

  def test_streams
    code = <<~RUBY
      p(overlapping do
        Heddle.map(0...10) do |number|
          words = text(number, 0.1)
          [STUB.watch(words).map(&:text).join, STUB.collect([words, words]).text,
           STUB.chat([words, words]).map(&:text).join]
        end
      end)
    RUBY
    each_backend(code) do |outcome|
      assert_overlap(outcome, Array.new(10) { |number| [number.to_s * 3, ([number] * 2).join(" "), number.to_s * 2] })
    end
  end

  # Its own limit, one around it, and a cancel, each followed by another call.
  def test_timeouts_and_cancel
    code = <<~RUBY
      value = overlapping do
        limits = [
          -> { ask(1, 20, deadline: Time.now + 0.2) },
          -> { Timeout.timeout(0.1) { ask(2, 20) } },
          -> { Heddle.timeout(0.1) { STUB.watch(text(3, 20)).to_a } }
        ]
        errors = limits.map { |limit| [limit.call, :none] rescue [$!.class, ask(4, 0)] }
        task = Heddle.spawn { ask(5, 20) }
        task.wait(0.1)
        task.cancel.wait(10)
        [*errors.map { |one| one.map(&:to_s) }, task.cancelled?, ask(6, 0)]
      end
      p(value)
    RUBY
    each_backend(code) do |outcome|
      classes = %w[GRPC::DeadlineExceeded Timeout::Error Heddle::TimeoutError]

      assert_overlap(outcome, [*classes.map { |name| [name, "4"] }, true, "6"])
    end
  end

  def test_errors_and_no_task
    code = <<~RUBY
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      stub = LateService::Stub.new("127.0.0.1:\#{port}", :this_channel_is_insecure)
      value = overlapping { stub.ask(text(1, 0)) rescue $!.class.to_s }
      p([value.first, ask(2, 0)])
    RUBY
    each_backend(code) { |outcome| assert_equal(["GRPC::Unavailable", "2"], outcome) }
  end
end
