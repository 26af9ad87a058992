# frozen_string_literal: true

# bin/test: takes 100 s, 0.7 of a core

require_relative "../test_helper"
require "support/sidekiq/sidekiq_case"

# heddle/sidekiq: a process ends while a job computes, and holds up all other tasks, because they have no time slices.
contract "SidekiqHeldUp" do
  extend TestSupport::SidekiqCase

  def start_sidekiq(*, **) = super(*, **, HEDDLE_TIME_SLICE: "0")

  # The jobs that were pushed meanwhile are in the queue, with the job that computes. So is the job that has a lock, for
  # which the program waits at the end, and the connections of the pool.
  def test_term
    push("Hold", "lock")
    pid = start_sidekiq("-c", "10", "-t", "2", TEST_LOCK: "1")
    wait_for_reports("holds", 1)
    push("Compute", 600)
    wait_for_reports("computes", 1)
    8.times { |number| push("Wait", 0, number) }
    wait_until("the answers of Redis") { queued.size <= 2 }

    assert_predicate(stop(pid), :success?)
    assert_equal(["Compute", "Hold", *["Wait"] * 8], queued.sort)
    assert_empty(reports("done"))
  end

  # No connection is left for putting jobs back.
  def test_term_when_all_connections_are_taken
    pid = start_sidekiq("-c", "2", "-t", "2")
    push("Hold", "lock")
    wait_for_reports("holds", 1)
    push("Compute", 600)
    wait_for_reports("computes", 1)

    assert_predicate(stop(pid), :success?)
    assert_equal(%w[Compute Hold], queued.sort)
    assert_match(/Pushed 2 jobs back to Redis/, @log)
  end

  # A job that has not begun is in the queue again while the other job still computes.
  def test_quiet
    pid = start_sidekiq("-c", "20", "-t", "2")
    push("Compute", 600)
    wait_for_reports("computes", 1)
    8.times { |number| push("Wait", 0, number) }
    wait_until("the answers of Redis") { queued.empty? }
    Process.kill(:TSTP, pid)
    wait_until("the return of the jobs") { queued.size == 8 && blocked_clients.zero? }
    push("Wait", 0, 8)

    assert_predicate(stop(pid), :success?)
    assert_equal(["Compute", *["Wait"] * 9], queued.sort)
  end

  # The task that writes to the log has its lock meanwhile.
  def test_signals_while_the_log_is_held
    5.times { push("Hold", "log") }
    pid = start_sidekiq("-c", "10", "-t", "2", TEST_LOG: "late")
    wait_for_reports("holds", 5)
    push("Compute", 600)
    wait_for_reports("computes", 1)
    Process.kill(:TSTP, pid)
    wait_until("the end of all questions") { blocked_clients.zero? }

    assert_predicate(stop(pid), :success?)
    assert_equal(["Compute", *["Hold"] * 5], queued.sort)
    assert_match(/Received TSTP.*Terminating \d+ busy.*Pushed 6 jobs back to Redis.*Bye!/m, @log)
  end

  # No processor's start waits for a job.
  def test_start_with_a_job_that_computes
    push("Compute", 600)
    pid = start_sidekiq("-c", "100", "-t", "2")
    wait_for_reports("computes", 1)

    assert_predicate(stop(pid), :success?)
    assert_equal(["Compute"], queued)
  end

  # They are pushed back, and neither retried nor pushed once more.
  [nil, "1"].each do |reliable|
    define_method("test_jobs_that_rescue_the_shutdown_are_in_the_queue_once#{"_with_reliable_fetch" if reliable}") do
      2.times { push("Swallow", false) && push("Swallow", true) }
      push("Iterate", 3, true)
      pid = start_sidekiq("-c", "10", "-t", "2", **({ TEST_RELIABLE: reliable } if reliable))
      wait_for_reports("begun", 4)
      wait_for_reports("iterated", 1)

      assert_predicate(stop(pid), :success?)
      assert_equal(["Iterate", *["Swallow"] * 4], queued.sort)
      assert_equal(0, redis("ZCARD", "retry"))
    end
  end
end
