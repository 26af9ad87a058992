# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../test_helper"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq: the processors of a real Sidekiq, in a process of its own, are tasks.
contract "Sidekiq" do
  extend TestSupport::SidekiqCase

  # One thread does 500 jobs at once, where each waits until all others have begun; and another capsule has threads.
  def test_all_kinds_of_jobs
    pid = start_sidekiq("-c", "500", mode: "mixed", TEST_CAPSULE: "1")

    assert_equal(12, wait_until("those who wait for jobs") { blocked_clients.then { |count| count if count >= 12 } })
    500.times { push("Meet", 500) }
    wait_for_reports("met", 500)

    assert_operator(Dir.children("/proc/#{pid}/task").size, :<, 20)
    assert_equal("502", redis("HGET", redis("SMEMBERS", "processes").first, "concurrency"))
    check_what_a_job_has
    check_retries_and_handlers
    check_tasks_of_a_job
    check_quiet(pid)
    began = now

    assert_predicate(stop(pid), :success?)
    assert_operator(now - began, :<, 20)
    assert_equal([%w[event startup], %w[event quiet], %w[event shutdown], %w[event exit]], reports("event"))
    assert_empty(redis("SMEMBERS", "processes"))
    assert_equal("529", redis("GET", "stat:processed"))
  end

  # The start waits for no job that computes.
  def test_a_start_with_a_backlog_of_jobs_that_compute
    100.times { push("Compute", 0.05) }
    code = <<~RUBY
      load(#{TestSupport::SidekiqCase::APPLICATION.inspect})
      engine = Sidekiq.configure_embed { |config| (config.logger = Logger.new(nil)) && config.concurrency = 100 }
      engine.run
      $stdout.syswrite(Sidekiq.redis { |redis| redis.call("LRANGE", REPORT, 0, -1).grep(/computed/).size })
      exit!
    RUBY
    env = { "REDIS_URL" => "redis://127.0.0.1:#{server.port}/0", "TEST_MODE" => "heddle", "HEDDLE_BACKEND" => backend }
    outcome = run_ruby(code, gems: true, env:, options: %w[-W0])

    assert_operator(Integer(outcome.out), :<, 50, outcome.err)
  end

  # What the Web UI shows; and the processors have one pool of connections.
  def test_figures
    code = <<~RUBY
      load(#{TestSupport::SidekiqCase::APPLICATION.inspect})
      require "sidekiq/api"
      require "stringio"
      log = StringIO.new
      def log.write(text) = sleep(0.01) && super
      engine = Sidekiq.configure_embed { |config| (config.logger = Logger.new(log)) && config.concurrency = 30 }
      engine.run
      ids = Array.new(12) { |number| Wait.perform_async(60, number) }
      sleep(0.01) until Sidekiq.redis { |redis| redis.call("LRANGE", REPORT, 0, -1) }.grep(/began/).size == 12
      engine.instance_variable_get(:@launcher).heartbeat
      process = Sidekiq::ProcessSet.new.first
      works = Sidekiq::WorkSet.new.to_a
      figures = [process["busy"], process["concurrency"], works.map { |work| work[1] }.uniq.size, # the tasks
                 works.map { |work| work[2].job.jid }.sort == ids.sort, Sidekiq::Stats.new.enqueued,
                 log.string.scan(/pool_name\\W+default/).size]
      $stdout.syswrite(JSON.generate(figures))
      exit!
    RUBY
    env = { "REDIS_URL" => "redis://127.0.0.1:#{server.port}/0", "TEST_MODE" => "heddle", "HEDDLE_BACKEND" => backend }

    assert_equal([12, 30, 12, true, 0, 1], JSON.parse(run_ruby(code, gems: true, env:, options: %w[-W0]).out))
  end

  private

  def check_what_a_job_has
    20.times { |number| push("Wait", 0.05, number) }
    push("Wait", 0.05, 20, at: 1) # it is scheduled
    push("Wait", 0.05, 21, queue: "threaded")
    done = wait_for_reports("done", 22).sort_by { |one| one[1] }
    threaded = done.pop

    assert_equal([*0..20], done.map { |one| one[1] })
    assert_equal([["sidekiq.heddle", 1, true, true]], done.map { |one| one[2, 4] }.uniq)
    assert_equal("sidekiq.threaded/processor", threaded[2])
    assert_operator(done.map(&:last).uniq.size, :>, 10) # the name of each processor
  end

  def check_retries_and_handlers
    push("Fail", 1, retry: 1)
    push("Fail", 9, retry: 1)

    assert_equal([["recovered", 2]], wait_for_reports("recovered", 1))
    assert_equal([["death", "Fail", "failure 2"]], wait_for_reports("death", 1))
    assert_equal([["error", "failure 1", "Fail"], ["error", "failure 1", "Fail"], ["error", "failure 2", "Fail"]],
                 wait_for_reports("error", 3).sort)
    assert_equal(1, redis("ZCARD", "dead"))
  end

  # A job has ended when the tasks that it has spawned have, and fails with them.
  def check_tasks_of_a_job
    push("Spawn", false, retry: false)
    push("Spawn", true, retry: false)

    assert_equal([["spawned", true, true]], wait_for_reports("spawned", 1))
    assert_includes(wait_for_reports("error", 4), ["error", "the task failed", "Spawn"])
  end

  # Jobs that run may end, and no other job is taken, also by processors that have asked Redis before.
  def check_quiet(pid)
    push("Wait", 3, "running")
    # (A job that Redis has handed over, and that has not begun, goes back into the queue.)
    wait_until("its start") { reports("began").any? { |report| report[1] == "running" } }
    Process.kill(:TSTP, pid)
    wait_until("the end of all questions") { blocked_clients.zero? }
    push("Wait", 0, "late")

    assert_equal("running", wait_for_reports("done", 23).last[1])
    assert_equal(["Wait"], queued)
  end
end
