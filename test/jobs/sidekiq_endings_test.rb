# frozen_string_literal: true

# bin/test: takes 25 s, 0.5 of a core

require_relative "../test_helper"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq: how a process ends, and what becomes of its jobs.
contract "SidekiqEndings" do
  extend TestSupport::SidekiqCase

  # What does not end in time is pushed back, and is interrupted; an ensure clause that takes too long is as well. An
  # iteration goes on in the next process.
  def test_jobs_are_pushed_back
    iteration = push("Iterate", 30)
    30.times { push("Stubborn", 40) }
    push("Stubborn", 100)
    first = start_sidekiq("-c", "50", "-t", "3") # (in the first 2 s some still ask Redis, and would get a job again)
    wait_for_reports("begun", 31)
    wait_for_reports("iterated", 3)
    began = now

    assert_predicate(stop(first), :success?)
    assert_operator(now - began, :<, 30)
    assert_equal(["Iterate", *["Stubborn"] * 31], queued.sort)
    assert_match(/Pushed 31 jobs back to Redis/, @log)
    assert_empty(reports("ended"))
    assert_equal(0, redis("ZCARD", "retry"))
    assert_equal("1", redis("HGET", "it-#{iteration}", "ex"))
    second = start_sidekiq("-c", "50")
    iterated = wait_for_reports("iterated", 30)

    assert_equal([*0...30], iterated.map { |one| one[1] })
    assert_equal([first, second], iterated.map(&:last).uniq)
  end

  # Jobs that fail while the processors are being started: each gets a new processor, so that all are there in the end.
  def test_jobs_that_fail_at_the_start
    200.times { push("Fail", 1, retry: false) }
    first = start_sidekiq("-c", "100")
    wait_for_reports("error", 200)
    100.times { push("Meet", 100) }
    wait_for_reports("met", 100)

    assert_predicate(stop(first), :success?)
    refute_match(/during iteration/, @log)
  end

  # An exception that somebody raises in the thread ends all jobs, and the next ones are done in another thread.
  def test_an_exception_in_the_thread
    push("Break")
    first = start_sidekiq("-c", "50")
    wait_for_reports("again", 1)
    50.times { push("Meet", 50) }
    wait_for_reports("met", 50)

    assert_predicate(stop(first), :success?)
  end

  # A connection that waits in Redis for a job, and that nobody reads from any more, would get one.
  def test_no_connection_waits_for_a_job_that_nobody_would_get
    first = start_sidekiq("-c", "50")
    most = Array.new(5) do |number|
      push("Break")
      wait_until("the retry") { (redis("ZCARD", "retry") + reports("again").size) > number }
      Array.new(50) { sleep(0.005) && blocked_clients }.max
    end

    assert_operator(most.max, :<=, 10, most.inspect)
    assert_predicate(stop(first), :success?)
  end

  # All jobs would have the same connection.
  def test_active_support_by_thread_is_refused
    missing = TestSupport::Clients.load("activesupport", "active_support/version")
    skip(missing) if missing

    pid = start_sidekiq("-c", "5", wait: false, TEST_ISOLATION: "thread")

    refute_predicate(ended(pid), :success?)
    assert_includes(@log, "config.active_support.isolation_level = :fiber")
  end

  # SIGKILL, with jobs that run and jobs that wait.
  def test_a_kill_loses_no_job
    60.times { |number| push("Slow", number) }
    first = start_sidekiq("-c", "20", TEST_RELIABLE: "1")
    wait_for_reports("begun", 20)
    stop(first, :KILL)

    assert_operator(queued.size, :<=, 40)
    assert_operator(working.values.sum, :>, 0)
    pass_a_minute
    second = start_sidekiq("-c", "60", TEST_RELIABLE: "1")
    done = wait_until("the end of all") do # one may run twice
      reports("done").map { |one| one[1] }.uniq.then { |numbers| numbers if numbers.size == 60 }
    end

    assert_equal([*0...60], done.sort)
    assert_match(/Process .*:#{first}:.* is gone: \d+ of its jobs are in queue:default again/, log_of(second))
    assert_empty(wait_until("the end of the last job") { working.values.sum.zero? && queued })
  end

  # Threads have the same; what is done leaves nothing behind, and what is not is pushed back at the end.
  def test_reliable_threads
    push("Fail", 9, retry: 1)
    push("Slow", 1)
    push("Stubborn", 40)
    pid = start_sidekiq("-c", "5", "-t", "3", "-q", "default", "-q", "other", mode: "threads", TEST_RELIABLE: "1")
    push("Slow", 2, queue: "other")
    wait_for_reports("done", 2)
    wait_for_reports("begun", 3)
    wait_for_reports("death", 1)

    wait_until("the end of the others") { working.values.sum == 1 }

    assert_predicate(stop(pid), :success?)
    assert_equal(["Stubborn"], queued)
    assert_equal(0, working.values.sum)
    assert_empty(redis("KEYS", "heddle:alive:*"))
  end

  # One that ends each process that runs it is dead after the fourth.
  def test_a_job_that_kills
    push("Kill")
    4.times { end_all_jobs }
    last = start_sidekiq("-c", "5", TEST_RELIABLE: "1")
    wait_until("the death of the job") { redis("ZCARD", "dead") == 1 }

    wait_until("the log") { log_of(last)[/1 jobs have ended 4 processes, and are dead now/] }

    assert_empty(queued)
  end

  # Jobs that are beside it each time are done.
  once def test_jobs_beside_a_job_that_kills
    push("Kill", 8)
    8.times { |number| push("Stay", number) }
    3.times do
      redis("DEL", "stays")
      end_all_jobs
    end

    assert_equal(8, redis("LLEN", "stays"))
    redis("SET", "go", "1")
    end_all_jobs
    start_sidekiq("-c", "20", TEST_RELIABLE: "1")
    wait_until("the end of all") { redis("ZCARD", "dead") == 1 && reports("done").size == 8 }

    assert_equal(["Kill"], redis("ZRANGE", "dead", 0, -1).map { |job| JSON.parse(job)["class"] })
    assert_equal([*0...8], reports("done").map(&:last).sort)
  end

  private

  # @return [Hash{String => Integer}] how many jobs are in the list of each process and queue
  def working = redis("KEYS", "heddle:working:*").to_h { |list| [list, redis("LLEN", list)] }

  # A process runs jobs until one of them kills it.
  def end_all_jobs
    status = ended(start_sidekiq("-c", "20", wait: false, TEST_RELIABLE: "1"))

    assert_equal(Signal.list["KILL"], status.termsig, @log)
    pass_a_minute
  end

  # For the processes that are gone.
  def pass_a_minute
    wait_until("the end of their last questions") { blocked_clients.zero? }
    redis("DEL", "heddle:trial", *redis("KEYS", "heddle:alive:*"))
  end
end
