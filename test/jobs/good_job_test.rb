# frozen_string_literal: true

# bin/test: takes 40 s, 0.6 of a core

require_relative "../test_helper"
require "support/good_job_case"

# GoodJob in `heddle serve`: the tasks of requests put jobs into the queue, and threads of GoodJob's run them beside.
contract "GoodJob" do
  extend TestSupport::Clients

  client "pg", server: TestSupport::Servers::Postgres

  heddle_only "the server is Heddle's"

  include TestSupport::GoodJobCase

  # Nothing is left, and nothing has failed.
  def assert_all_finished(count)
    finished = "SELECT count(*), count(error) FROM good_jobs WHERE finished_at IS NOT NULL"
    wait_until("the end of the jobs") { sleep(0.05) && query(finished).dig(0, 0) == count.to_s }

    assert_equal([[count.to_s, "0"]], query(finished))
  end

  # 30 requests at once put their jobs into the queue. Requests and jobs share the pool; the thread that listens has one
  # connection more.
  def test_jobs_of_requests
    site = serve
    threads = Array.new(30) { |number| Thread.new { site.get("/WaitJob/#{number}").code } }

    assert_equal(["200"], threads.map(&:value).uniq)
    wait_for_reports("began", 5)
    let_go
    done = wait_for_reports("done", 30)

    assert_each_once(0...30, done)
    assert_match(/GoodJob::Scheduler/, done.map { |one| one[1] }.uniq.join)
    assert_equal([true], done.map(&:last).uniq, "a job has run in a task")
    assert_operator(connections, :<=, 9)
    assert_all_finished(30)
  end

  def connections
    Integer(query(<<~SQL).dig(0, 0))
      SELECT count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    SQL
  end

  # A job that computes holds up no request, and jobs have tasks.
  def test_requests_beside_a_job_that_computes
    site = serve
    path = File.join(tempdir, "over")
    site.get("/ComputeJob#{path}")
    wait_for_reports("computes", 1)
    3.times { |number| site.get("/TasksJob/#{number}") }

    assert_equal([1, 2, 3].flat_map { |part| [part] * 3 }, wait_for_reports("part", 9).map(&:first))
    assert_empty(reports("computed"))
    File.write(path, "")
    wait_for_reports("computed", 1)

    assert_all_finished(4)
  end

  # Five jobs run, and five wait: the next process runs all of them.
  def test_a_kill_loses_no_job
    site = serve
    10.times { |number| site.get("/WaitJob/#{number}") }
    wait_for_reports("began", 5)
    site.signal(:KILL)
    site.wait
    let_go
    serve

    assert_each_once(0...10, wait_for_reports("done", 10))
    assert_all_finished(10)
  end

  # Jobs that end in time end once. The others are run again by the next process, as jobs that have not begun.
  def test_a_process_that_ends_loses_no_job
    site = serve
    2.times { |number| site.get("/WaitJob/#{number}") }
    wait_for_reports("began", 2)
    (2...7).each { |number| site.get("/ShortJob/#{number}") }
    wait_for_reports("began", 5)
    site.signal(:TERM)

    assert_predicate(site.wait, :success?)
    assert_empty(reports("done").map(&:first) & [0, 1])
    let_go
    serve

    assert_each_once(0...7, wait_for_reports("done", 7))
    assert_all_finished(7)
  end

  # It keeps its jobs, and goes on.
  def test_a_process_that_stands_still
    first = serve
    3.times { |number| first.get("/WaitJob/#{number}") }
    wait_for_reports("began", 3)
    first.signal(:STOP)
    second = serve
    let_go
    (3...6).each { |number| second.get("/WaitJob/#{number}") }

    assert_each_once(3...6, wait_for_reports("done", 3))
    first.signal(:CONT)

    assert_each_once(0...6, wait_for_reports("done", 6))
    assert_all_finished(6)
  end
end
