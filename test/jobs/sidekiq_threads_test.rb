# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"

# The threads that the processors of Sidekiq share, with a capsule that starts none of them for a while.
class SidekiqThreadsTest < HeddleTest
  # Starts the threads.
  class Capsule
    attr_writer :fails

    def name = "default"

    def safe_thread(_name, &)
      raise ThreadError, "can't create Thread: Resource temporarily unavailable" if @fails

      Thread.new(&)
    end
  end

  # Asks for a job, in the thread of the fetches.
  Processor = Struct.new(:job, :heddle_order) do
    def stopping? = false
    def heddle_begin(unit) = self.job = unit
  end

  def setup
    super
    missing = TestSupport::Clients.load("sidekiq", "sidekiq/version")
    skip(missing) if missing
    require "sidekiq/cli"
    require "heddle/sidekiq"
    @capsule = Capsule.new
    @fetches = Heddle::Sidekiq.const_get(:Fetches).of(@capsule)
  end

  # Only ten processors ask at the same time.
  def test_a_thread_that_cannot_start_keeps_no_place
    Heddle.run do
      @capsule.fails = true

      12.times { assert_raises(ThreadError) { Heddle.timeout(20) { ask } } }
      @capsule.fails = false

      assert_equal(:job, Heddle.timeout(20) { ask })
    end
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    @fetches.settle(60)

    assert_operator(Process.clock_gettime(Process::CLOCK_MONOTONIC) - before, :<, 30)
  end

  # It goes back from the task that has it.
  def test_a_job_that_nobody_begins_is_not_lost
    @capsule.fails = true
    unit = Struct.new(:tries) { def requeue = (self.tries += 1) < 2 && raise(IOError, "Redis is away") }.new(0)
    Heddle.run { @fetches.give_back(unit) }

    assert_equal(2, unit.tries)
  end

  # The thread of the jobs ends with its last user.
  def test_a_processor_that_cannot_start_does_not_count
    @capsule.fails = true

    assert_raises(ThreadError) { start_processor }
    refute_predicate(Heddle::Sidekiq.const_get(:JOBS), :used?)
    @capsule.fails = false

    assert_nil(start_processor.value)
    refute_predicate(Heddle::Sidekiq.const_get(:JOBS), :used?)
  end

  private

  # A processor whose work is done at once.
  def start_processor
    capsule = @capsule
    processor = Object.new
    processor.define_singleton_method(:capsule) { capsule }
    processor.define_singleton_method(:watchdog) { |_name, &work| work.call }
    processor.define_singleton_method(:safe_thread) { |name, &work| capsule.safe_thread(name, &work) }
    Heddle::Sidekiq.const_get(:ProcessorTask).new(processor) { nil }
  end

  def ask = Processor.new.tap { |processor| @fetches.ask(processor) { :job } }.job
end
