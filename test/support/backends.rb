# frozen_string_literal: true

require "support/io/streams"

module TestSupport
  # Generates one test class per backend from one body.
  #
  #   contract "Sleep" do
  #     def test_returns_whole_seconds
  #       assert_equal(0, reactor { sleep(0.01) })
  #     end
  #   end
  #
  # +backend+ is the name of the backend in each test ("uring", "epoll"). A backend that this machine cannot
  # offer gives a skip with Heddle's reason for each test. The name "threads" (see test_helper.rb) runs the same
  # bodies on plain threads: what a test asks of Heddle must be what Ruby itself does.
  #
  # "poll", on which few programs run, has the contracts in POLLED alone. With HEDDLE_BACKEND=poll it has all of them.
  module Contract
    REFERENCE = "threads"
    # The contracts that depend most on what the kernel says.
    POLLED = %r{/test/contract/(waits|sockets|streams)/}

    class << self
      # [name, nil or the reason why it is not available], best first.
      def backends = @backends ||= (chosen || (names - ["poll"])).map { |name| [name, reason(name)] }

      # Those of a file of contracts.
      def backends_for(file) = chosen || !file.match?(POLLED) ? backends : backends + [["poll", reason("poll")]]

      # The first one that can be had.
      def first = (backends.find { |_, reason| reason.nil? } || backends.first).first

      def reason(name)
        return if name == REFERENCE

        known = Heddle.backends.find { |one| one[:name] == name } or return "unknown backend"
        known[:available] ? nil : known[:reason].to_s
      end

      # @param both_ways [Boolean] with io_uring, once with system calls that transfers share, and once without
      def define(title, base, file, both_ways: false, &body)
        each_way(file, both_ways) do |backend, reason, calls|
          test_class = Class.new(base)
          Object.const_set("#{title}#{backend.capitalize}#{calls&.capitalize}Test", test_class)
          test_class.define_method(:backend) { backend }
          test_class.define_method(:calls) { calls }
          test_class.define_singleton_method(:first?) { Contract.first == backend }
          test_class.define_method(:backend_missing) { reason }
          test_class.class_eval(&body)
          test_class
        end
      end

      private

      # The names that the environment gives.
      def chosen = (ENV["HEDDLE_TEST_BACKENDS"] || ENV.fetch("HEDDLE_BACKEND", nil))&.split(",")

      def names = Heddle.backends.map { |one| one[:name] }

      def each_way(file, both_ways)
        backends_for(file).flat_map do |backend, reason|
          ways = both_ways && backend == "uring" ? %w[ring direct] : [nil]
          ways.map { |calls| yield(backend, reason, calls) }
        end
      end
    end
  end

  # A piece of concurrent work: a plain Fiber.schedule fiber, or a thread in the reference run.
  class Job
    attr_reader :fiber, :error

    def initialize
      @done = Thread::Queue.new
    end

    def perform
      @fiber = Fiber.current
      @value = yield
    rescue StandardError, Minitest::Assertion, Minitest::Skip, SignalException, NoMemoryError => e
      @error = e
    ensure
      @finished = true
      @done.close
    end

    # True once the block has ended.
    def finished? = @finished ? true : false

    # Waits for the end; the block's value or its exception.
    def value
      @done.pop
      @seen = true
      raise @error if @error

      @value
    end

    # Waits for the end; the exception or nil.
    def failure
      @done.pop
      @seen = true
      @error
    end

    # The exception that nobody has asked for.
    def unseen_error
      @error unless @seen
    end
  end

  # What the bodies of contract tests use.
  class ContractTest < ::HeddleTest
    include Streams

    ENTRY = ENV.fetch("HEDDLE_TEST_ENTRY", "run")

    # In the body of a contract: the test has little to do with the kernel, and takes long. It runs with one backend.
    def self.once(test) = first? ? test : remove_method(test)

    # In the body of a contract: plain threads cannot do the same, for that reason.
    def self.heddle_only(reason = nil) = reason ? @heddle_only = reason : @heddle_only

    def setup
      super
      @calls_before = ENV.fetch("HEDDLE_CALLS", nil)
      ENV["HEDDLE_CALLS"] = calls if calls
      @jobs = []
      skip("backend #{backend}: #{backend_missing}") if backend_missing
      heddle_only(self.class.heddle_only) if self.class.heddle_only
    end

    def teardown
      ENV["HEDDLE_CALLS"] = @calls_before
      super
    end

    # With a block: runs it, on this backend.
    def run(*, &block) = block ? Heddle.run(backend: backend, &block) : super

    def reference? = backend == Contract::REFERENCE

    # Skips the reference run where plain threads cannot do the same.
    def heddle_only(reason)
      skip("plain threads: #{reason}") if reference?
    end

    # For what this library does otherwise than glibc.
    def skip_on_musl(reason)
      skip("musl: #{reason}") if RbConfig::CONFIG.fetch("host_os").include?("musl")
    end

    # With HEDDLE_SAFE=1 (or HEDDLE_WITHOUT) the fallback of a patch runs, which lacks what this test is about.
    def needs_patch(name)
      patch = Heddle.patches.find { |one| one.name == name }
      skip("#{name} is #{patch.state}") unless reference? || patch.active?
    end

    # For a test in which nobody may run between two waits of a task, or a task that computes holds up all others.
    def needs_whole_turns
      slices = ENV.fetch("HEDDLE_TIME_SLICE", "")
      skip("HEDDLE_TIME_SLICE lets other tasks run meanwhile") unless slices.empty? || Float(slices).zero?
    end

    # For a test of an error that a socket keeps until somebody asks for it (SO_ERROR). libkqueue, with which the kqueue
    # backend runs on Linux, asks for it when it reports the socket. The kqueue(2) of a BSD leaves it there.
    def needs_pending_errors
      skip("libkqueue takes the error") if libkqueue?
    end

    # libkqueue differs from the kqueue(2) of a BSD in some points: guides/platforms.md.
    def libkqueue? = backend == "kqueue" && RUBY_PLATFORM.include?("linux")

    # Runs the block in a fiber under a scheduler of the backend, waits for all jobs, returns the block's value.
    # An exception in a job that the test has not asked for is raised here.
    def reactor(entry: ENTRY, &block)
      body = -> { end_jobs_on_error(&block) }
      value = reference? ? in_thread(&body) : in_scheduler(entry, &body)
      error = @jobs.filter_map(&:unseen_error).first
      raise error if error

      value
    ensure
      @jobs = []
    end

    # Starts the block concurrently: a Fiber.schedule fiber under Heddle, a thread in the reference run.
    def go(&block)
      job = Job.new
      @jobs << job
      if reference?
        (@threads ||= []) << Thread.new { job.perform(&block) }
      else
        Fiber.schedule { job.perform(&block) }
      end
      job
    end

    # Lets the other jobs run until they wait. On plain threads this is a matter of time.
    def settle
      reference? ? sleep(0.05) : 5.times { sleep(0) }
    end

    # Runs the block and returns its value; fails if another fiber has not run between its begin and its end. That fiber
    # is ready to run as soon as the block waits, so that the speed of the machine does not matter. Where a block waits
    # until #others_have_run, they run whenever it waits.
    def assert_others_run(at_least: 1)
      @turns = 0
      running = true
      ticker = go { (@turns += 1) && sleep(@turns < 4 ? 0 : 0.001) while running }
      turns_before = @turns
      value = yield
      progress = @turns - turns_before
      running = false
      ticker.value

      assert_operator(progress, :>=, at_least, "other fibers stood still")
      value
    ensure
      running = false
    end

    # For who lets the block of #assert_others_run go on, in a job beside it: however slow the machine is.
    def others_have_run
      before = @turns.to_i
      sleep(0.01) until @turns.to_i >= before + 5
      true
    end

    private

    # When a test fails in its main block, its jobs may wait for ever: they end here, so that the failure is seen.
    def end_jobs_on_error
      yield
    rescue Exception
      @jobs.each { |job| job.fiber&.kill unless job.finished? || reference? }
      raise
    end

    def in_thread
      @threads = []
      value = yield
      @threads.shift.join until @threads.empty?
      value
    ensure
      # A failed body leaves threads that wait for ever.
      @threads&.each { |thread| thread.join(0.5) || thread.kill }
    end

    def in_scheduler(entry, &block)
      return Heddle.run(backend: backend) { yield } if ["run", :run].include?(entry)

      job = Job.new
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: backend))
        Fiber.schedule { job.perform(&block) }
      end
      thread.join
      job.value
    end
  end
end

# See TestSupport::Contract.
def contract(title, **, &)
  file = caller_locations(1, 1).first.absolute_path
  TestSupport::Contract.define(title, TestSupport::ContractTest, file, **, &)
end
