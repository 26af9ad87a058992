# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../../tools/testing/test_pool"

# In which order bin/test starts its processes, and which run side by side.
class TestPoolTest < HeddleTest
  Job = Struct.new(:name, :seconds, :cores, :log, :gate) do
    def run
      log << name
      gate&.pop
      result = Struct.new(:ok?, :seconds, :cores)
      result.new(name != "failed", seconds * 2.0, cores / 2)
    end

    def kill = nil
  end

  def run_jobs(*jobs, record: File.join(tempdir, "costs.json"), cores: 2, **options)
    @costs = Tools::TestCosts.new(record: record, slowness: -> { 1.0 })
    @pool = Tools::TestPool.new(jobs, cores, costs: @costs, **options)
    @left_out = @pool.run { |job, _| yield job if block_given? }
    record
  end

  # A long one does not wait until all of the short ones have ended.
  def test_the_longest_comes_first_and_no_more_run_than_the_cores_bear
    log = Thread::Queue.new
    gates = Array.new(3) { Thread::Queue.new }
    jobs = [["short", 1, 0.5], ["heavy", 5, 1.0], ["long", 10, 1.5]].zip(gates)
    runner = Thread.new { run_jobs(*jobs.map { |job, gate| Job.new(*job, log, gate) }) }

    assert_equal(%w[heavy long], Array.new(2) { log.pop }.sort)
    assert_nil(log.pop(timeout: 0.05))
    gates[1] << :go

    assert_equal("short", log.pop(timeout: 20))
    [gates[0], gates[2]].each { |gate| gate << :go }
    runner.value
  end

  # Another program keeps the cores busy: then each core has one job.
  def test_no_more_run_than_leave_something_idle
    idle = Struct.new(:cores) { def look = cores }.new(0.1)
    log = Thread::Queue.new
    gate = Thread::Queue.new
    jobs = Array.new(9) { |i| Job.new(i.to_s, 1, i < 2 ? 1.0 : 0.1, log, gate) }
    runner = Thread.new { run_jobs(*jobs, idle: idle) }
    2.times { log.pop }

    assert_nil(log.pop(timeout: 2 * Tools::TestPool::PAUSE))
    idle.cores = 0.7
    6.times { log.pop }

    assert_equal(0, log.size) # MOST_PER_CORE
    9.times { gate << :go }
    runner.value
  end

  def test_what_is_known_of_an_earlier_run_counts
    log = Thread::Queue.new
    jobs = [["one", 1, 2.0], ["two", 2, 2.0], ["failed", 3, 2.0]]
    record = run_jobs(*jobs.map { |job| Job.new(*job, log) })

    assert_equal({ "two" => { "seconds" => 4.0, "cores" => 1.0 }, "one" => { "seconds" => 2.0, "cores" => 1.0 } },
                 JSON.parse(File.read(record)))
    log.clear
    run_jobs(Job.new("one", 9, 2.0, log), Job.new("two", 1, 2.0, log), record: record, cores: 1)

    assert_equal(%w[two one], Array.new(2) { log.pop })
  end

  # (That starts processes.)
  def test_how_slow_the_machine_is_is_not_measured_if_an_earlier_run_says_it
    record = run_jobs(Job.new("one", 1, 2.0, Thread::Queue.new))
    costs = Tools::TestCosts.new(record: record, slowness: -> { flunk })

    assert_equal([2.0, 1.0], costs.of(Job.new("one", 9, 2.0)).to_a)
  end

  def test_a_record_that_cannot_be_read_is_none
    record = File.join(tempdir, "costs.json")
    ["{", "[]", '{"one": 3}'].each do |text|
      File.write(record, text)
      run_jobs(Job.new("one", 1, 2.0, Thread::Queue.new), record: record)
    end
  end

  # Each takes twice as long as it says.
  def test_an_estimate_follows_how_it_goes
    jobs = [["long", 60, 1.0], ["middle", 40, 1.0], ["short", 20, 1.0]].map { |job| Job.new(*job, Thread::Queue.new) }
    estimates = []
    run_jobs(*jobs, cores: 1) { estimates << @pool.remaining.ceil }

    assert_equal([120, 40, 0], estimates)
  end

  def test_what_would_end_too_late_does_not_begin
    log = Thread::Queue.new
    jobs = [["long", 600, 1.0], ["short", 20, 1.0], ["middle", 300, 1.0]].map { |job| Job.new(*job, log) }
    run_jobs(*jobs, cores: 1, deadline: now + 400)

    assert_equal(["long"], @left_out.map(&:name))
    assert_equal(%w[middle short], Array.new(2) { log.pop })
  end

  def test_a_slow_machine_takes_longer_than_the_files_say
    costs = Tools::TestCosts.new(record: File.join(tempdir, "none.json"), slowness: -> { 3.0 })
    jobs = [["long", 60, 0.5], ["short", 10, 1.0]].map { |job| Job.new(*job) }

    assert_equal([180.0, 195.0], [costs.total(jobs, 2), costs.total([*jobs, *[jobs.last] * 9], 2)])
  end
end
