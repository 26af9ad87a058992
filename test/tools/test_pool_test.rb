# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../../tools/test_pool"

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

  def run_jobs(*jobs, record: File.join(tempdir, "costs.json"))
    Tools::TestPool.new(jobs, 2, record: record).run { nil }
    record
  end

  def test_the_longest_comes_first_and_no_more_run_than_the_cores_bear
    log = Thread::Queue.new
    gates = Array.new(3) { Thread::Queue.new }
    jobs = [["short", 1, 0.5], ["heavy", 5, 1.0], ["long", 10, 1.5]].zip(gates)
    runner = Thread.new { run_jobs(*jobs.map { |job, gate| Job.new(*job, log, gate) }) }

    assert_equal(%w[long short], Array.new(2) { log.pop }.sort)
    gates[0] << :go

    assert_nil(log.pop(timeout: 0.05))
    gates[2] << :go

    assert_equal("heavy", log.pop(timeout: 20))
    gates[1] << :go
    runner.value
  end

  def test_what_is_known_of_an_earlier_run_counts
    log = Thread::Queue.new
    jobs = [["one", 1, 2.0], ["two", 2, 2.0], ["failed", 3, 2.0]]
    record = run_jobs(*jobs.map { |job| Job.new(*job, log) })

    assert_equal({ "two" => { "seconds" => 4.0, "cores" => 1.0 }, "one" => { "seconds" => 2.0, "cores" => 1.0 } },
                 JSON.parse(File.read(record)))
    log.clear
    run_jobs(Job.new("one", 9, 2.0, log), Job.new("two", 1, 2.0, log), record: record)

    assert_equal(%w[two one], Array.new(2) { log.pop })
  end

  def test_a_record_that_cannot_be_read_is_none
    record = File.join(tempdir, "costs.json")
    ["{", "[]", '{"one": 3}'].each do |text|
      File.write(record, text)
      run_jobs(Job.new("one", 1, 2.0, Thread::Queue.new), record: record)
    end
  end
end
