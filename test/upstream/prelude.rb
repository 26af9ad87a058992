# frozen_string_literal: true

# The first "test file" that suites.rb gives to CRuby's test runner: runs every test, with its setup and its teardown,
# in a fiber of a Heddle scheduler of its own, and notes in a file what becomes of it. HEDDLE_SUITES_BACKEND: uring,
# epoll, outside (no scheduler runs, but Heddle's methods are in place) or nothing (no Heddle). HEDDLE_SUITES_RESULTS:
# the file, a line of JSON for each start and each end of a test. One that is in there already is not run again:
# suites.rb goes on behind the test that hung or ended the process.
# HEDDLE_SUITES_REQUIRE: what is loaded in place of heddle.
# HEDDLE_SUITES_THREADS: a folder; threads that are started by files in it run in a fiber of a scheduler of their own.
# HEDDLE_SUITES_BESIDE: another task computes beside each test.

require "json"

module HeddleSuites
  BACKEND = ENV.delete("HEDDLE_SUITES_BACKEND")
  RESULTS = File.open(ENV.delete("HEDDLE_SUITES_RESULTS"), "a+")
  DONE = RESULTS.each_line.to_h { |line| [JSON.parse(line)["test"], true] }
  RESULTS.sync = true
  THREADS = ENV.delete("HEDDLE_SUITES_THREADS")
  BESIDE = ENV.delete("HEDDLE_SUITES_BESIDE")
  PROCESS = Process.pid

  FEATURE = ENV.delete("HEDDLE_SUITES_REQUIRE") || "heddle"

  require FEATURE if BACKEND
  INSIDE = ![nil, "outside"].include?(BACKEND)
  # The thread keeps the backend, so its descriptors are here before the first test, and nobody takes them for a leak.
  Heddle.run(**(INSIDE ? { backend: BACKEND } : {})) { nil } if BACKEND

  class << self
    def around(&)
      return yield unless INSIDE

      value = Heddle.run(backend: BACKEND) { BESIDE ? beside(&) : yield }
      raise "the scheduler is still set" if Fiber.scheduler

      value
    end

    # A task is ready whenever the test waits, and whenever a time slice of the test has ended. It lets other threads
    # run, too: tests give them 0.1 seconds, which is the turn of a thread that computes.
    def beside
      computes = true
      Heddle.spawn(name: "beside", background: true) do
        while computes
          10_000.times { break unless computes }
          Thread.pass
          sleep(0)
        end
      end
      yield
    ensure
      computes = false
    end

    # For a process of its own, of which the script runs as this one runs tests.
    def script(source)
      return "require #{FEATURE.dump}; Heddle.run { nil }; #{source}" if BACKEND == "outside"

      "require #{FEATURE.dump}; Heddle.run(backend: #{BACKEND.dump}) do #{source}\nend"
    end

    def of_a_test?(block)
      file, = block&.source_location
      file&.start_with?(THREADS)
    end

    # A test that forks may come back from it in the child.
    def note(**line)
      RESULTS.puts(JSON.generate(line)) if Process.pid == PROCESS
    end

    def outcome(errors)
      return { state: "passed" } if errors.empty?

      bad = errors.grep_v(Test::Unit::PendedError)
      { state: bad.empty? ? "skipped" : "failed", text: (bad.empty? ? errors : bad).map { |e| describe(e) }.join("\n") }
    end

    def describe(error)
      text = "#{error.class}: #{error.message}\n#{(error.backtrace || []).first(20).join("\n")}"
      text = text.dup.force_encoding(Encoding::UTF_8).scrub
      error.cause ? "#{text}\ncause: #{error.cause.class}: #{error.cause.message.scrub}" : text
    end
  end

  # The events of a test that the runner sees, also of its teardown.
  module Recorded
    def heddle_errors = @heddle_errors ||= []

    def record(_suite, _method, _assertions, _time, error, *)
      heddle_errors << error if error
      super
    end
  end

  # Prepended to Thread: the block of a thread that a test starts runs in a fiber, too.
  module EachThread
    # Prepended to its singleton class: Ruby's own ones do not call initialize.
    module Starts
      def start(...) = new(...)

      def fork(...) = new(...)
    end

    def initialize(*, &block)
      if HeddleSuites.of_a_test?(block)
        super { |*arguments| HeddleSuites.around { block.call(*arguments) } }
      else
        super
      end
    end
  end

  # Prepended to Test::Unit::TestCase: the child process of a test runs its code in a fiber, too. Tests that put a
  # method of their own in the place of Addrinfo.getaddrinfo are left out: Heddle does not look names up with that.
  module Separately
    def assert_separately(arguments, *place, source, **)
      here = caller_locations(1, 1).first
      place = [here.path, here.lineno] unless place.all? && place.size == 2
      source = HeddleSuites.script(source) unless source.include?("define_singleton_method(:getaddrinfo)")
      super # (with what they are now)
    end
  end

  # Prepended to Test::Unit::TestCase.
  module EachTest
    def run(runner)
      test = "#{self.class}##{__name__}"
      return "not again" if DONE[test]

      runner.extend(Recorded)
      runner.heddle_errors.clear
      HeddleSuites.note(test:)
      result = around_test(runner) { super }
      HeddleSuites.note(test:, **HeddleSuites.outcome(runner.heddle_errors))
      result
    end

    private

    def around_test(runner, &)
      HeddleSuites.around(&)
    rescue *Test::Unit::TestCase::PASSTHROUGH_EXCEPTIONS
      raise
    rescue Exception => e # what comes out of Heddle.run itself, such as Heddle::Deadlock
      runner.record(self.class, __name__, _assertions, 0, e)
      runner.puke(self.class, __name__, e)
    end
  end
end

Test::Unit::TestCase.prepend(HeddleSuites::EachTest)
Test::Unit::TestCase.prepend(HeddleSuites::Separately) if HeddleSuites::BACKEND
if HeddleSuites::BACKEND && HeddleSuites::THREADS
  Thread.prepend(HeddleSuites::EachThread)
  Thread.singleton_class.prepend(HeddleSuites::EachThread::Starts)
end
