# frozen_string_literal: true

# bin/test: takes 30 s, 0.7 of a core

require_relative "../test_helper"
require "support/serve_case"

# Workers of `heddle serve` that are missing, hang or have had their time, and their number.
class ServeWorkersTest < HeddleTest
  include TestSupport::ServeCase

  # How many more than the number of workers ask: with a share for each worker, some would have to wait for one that is
  # not there.
  ASKED = 12

  def assert_all_served(program)
    answers = Array.new(ASKED) { Thread.new { Timeout.timeout(30) { ask(program) } } }.map(&:value)

    assert_equal(%w[one], answers.uniq)
  end

  def test_a_worker_that_cannot_start_holds_up_nobody
    write("config.ru", <<~RUBY)
      first = begin
        File.open("first", File::CREAT | File::EXCL) { true }
      rescue Errno::EEXIST
        raise "no connection is left"
      end
      #{APP}
    RUBY
    program = serve("--workers", "2", until_said: /is ready/)
    program.wait_for(/another one takes its place/)

    assert_all_served(program)
    program.wait_for(/another one takes its place/, 2)

    assert_said(program, /no connection is left/)
    assert_ends(program)
  end

  def test_a_worker_that_still_starts_holds_up_nobody
    write("config.ru", "sleep if File.exist?('first')\nFile.write('first', '')\n#{APP}")
    program = serve("--workers", "2", until_said: /is ready/)

    assert_all_served(program)
    assert_ends(program)
  end

  # A worker that does nothing at all, as one that computes without an end.
  def test_a_worker_that_hangs_holds_up_nobody_and_is_replaced
    program = workers(2, "--worker-timeout", "10")
    hangs = Integer(name_and_pid(program).last)
    Process.kill(:STOP, hangs)

    assert_all_served(program)
    program.wait_for(/\(process #{hangs}\) has not turned its loop for 10.* s, and is killed/)
    program.wait_for(/is ready/, 3)

    refute(alive?(hangs))
    assert_ends(program)
  end

  # It is not the workers that have stood still then.
  def test_workers_are_not_ended_because_all_processes_have_stood_still
    program = workers(1, "--worker-timeout", "6")
    pid = Integer(name_and_pid(program).last)
    Process.kill(:STOP, -program.pid)
    sleep(8)
    Process.kill(:CONT, -program.pid)

    3.times { assert_equal(["one", pid.to_s], name_and_pid(program)) && sleep(1) }

    assert_ends(program)
  end

  def test_an_application_that_takes_too_long_to_load
    write("config.ru", "sleep if File.exist?('first')\nFile.write('first', '')\n#{APP}")
    program = serve("--workers", "2", "--boot-timeout", "15", until_said: /is ready/)
    program.wait_for(/has not loaded the application within 15.* s, and is killed/)

    assert_equal("one", ask(program))
    assert_ends(program)
  end

  def test_workers_are_replaced_when_they_have_had_enough
    { "--worker-requests" => ["3", /has had its requests/], "--worker-age" => ["1", /has had its time/],
      "--worker-memory" => ["4096", /has had its memory/] }.each do |option, (limit, reason)|
      program = workers(1, option, limit, "--worker-timeout", "4")
      first = name_and_pid(program).last
      said = while_asked(program) { wait_until("another one serves") { name_and_pid(program).last != first } }

      assert_equal(%w[one], said.uniq)
      assert_said(program, reason)
      assert_ends(program)
    end
  end

  def test_one_worker_more_and_one_fewer
    program = workers(1)
    program.signal(:TTIN)
    program.wait_for(/is ready/, 2)
    both = wait_until("both serve") { (found = Array.new(40) { name_and_pid(program).last }.uniq).size == 2 && found }
    program.signal(:TTOU)
    wait_until("one has gone") { both.one? { |pid| alive?(Integer(pid)) } }
    2.times { program.signal(:TTOU) }

    assert_all_served(program)
    assert_ends(program)
  end
end
