# frozen_string_literal: true

# bin/test: takes 12 s, 0.3 of a core

require_relative "../../test_helper"

# Waiting for child processes, in every form that Ruby has.
contract "ProcessWait" do
  def child(code = "exit 0", **) = spawn("sh", "-c", code, **)

  def test_wait_for_a_pid
    reactor do
      pid = child("sleep 0.15; exit 3")
      status = assert_others_run { Process.wait2(pid) }

      assert_equal([pid, 3], [status[0], status[1].exitstatus])
      assert_equal(3, $?.exitstatus)
      assert_equal(pid, $?.pid)
    end
  end

  def test_wait_returns_the_pid
    reactor do
      pid = child

      assert_equal(pid, Process.wait(pid))
      pid = child

      assert_equal(pid, Process.waitpid(pid, 0))
    end
  end

  def test_a_child_that_has_ended_already
    reactor do
      pid = child
      sleep(0.1)

      assert_equal(pid, Process.wait(pid))
    end
  end

  def test_any_child
    reactor do
      pids = [child("sleep 0.1; exit 1"), child("sleep 0.2; exit 2")]
      seen = assert_others_run { [Process.wait2, Process.wait2(-1)] }

      assert_equal(pids.sort, seen.map(&:first).sort)
      assert_equal([1, 2], seen.map { |_, status| status.exitstatus }.sort)
    end
  end

  def test_the_own_group
    reactor do
      other = child("sleep 0.05", pgroup: true)
      pid = child("sleep 0.15")

      assert_equal(pid, assert_others_run { Process.wait(0) })
      assert_equal(other, Process.wait(other))
    end
  end

  def test_a_group
    reactor do
      plain = child
      leader = child("sleep 0.15; exit 4", pgroup: true)
      status = assert_others_run { Process.wait2(-leader) }

      assert_equal([leader, 4], [status[0], status[1].exitstatus])
      assert_equal(plain, Process.wait)
    end
  end

  def test_no_child
    reactor do
      assert_raises(Errno::ECHILD) { Process.wait }
      assert_raises(Errno::ECHILD) { Process.wait(0) }
      assert_raises(Errno::ECHILD) { Process.wait(Process.pid) }
      assert_raises(Errno::ECHILD) { Process.wait(1) }
      assert_raises(Errno::ECHILD) { Process.wait(-Process.pid) }
      assert_empty(Process.waitall)
    end
  end

  def test_a_second_wait_for_the_same_child
    reactor do
      pid = child
      Process.wait(pid)

      assert_raises(Errno::ECHILD) { Process.wait(pid) }
    end
  end

  def test_without_waiting
    reactor do
      reader, writer = pipe
      pid = child("read x", in: reader)

      assert_nil(Process.wait(pid, Process::WNOHANG))
      assert_nil(Process.wait2(-1, Process::WNOHANG))
      writer.puts

      assert_equal(pid, Process.wait(pid))
      assert_raises(Errno::ECHILD) { Process.wait(-1, Process::WNOHANG) }
    end
  end

  def test_a_stopped_child
    reactor do
      pid = child("kill -STOP $$; exit 5")
      status = Process.wait2(pid, Process::WUNTRACED).last

      assert_predicate(status, :stopped?)
      Process.kill(:CONT, pid)

      assert_equal(5, Process.wait2(pid).last.exitstatus)
    end
  end

  def test_a_child_that_is_killed
    reactor do
      pid = child("sleep 20")
      job = go { Process.wait2(pid).last }
      settle
      Process.kill(:TERM, pid)

      assert_equal(Signal.list["TERM"], job.value.termsig)
    end
  end

  def test_waitall
    reactor do
      pids = Array.new(5) { |i| child("sleep 0.0#{i}; exit #{i}") }
      seen = Process.waitall

      assert_equal(pids.sort, seen.map(&:first).sort)
    end
  end

  def test_many_children_at_once
    reactor do
      jobs = Array.new(30) { |i| go { Process.wait2(child("sleep 0.1; exit #{i}")).last.exitstatus } }

      assert_equal((0...30).to_a, jobs.map(&:value))
    end
  end

  def test_two_fibers_wait_for_any_child
    reactor do
      pids = Array.new(2) { |i| child("sleep 0.#{i + 1}") }
      jobs = Array.new(2) { go { Process.wait } }

      assert_equal(pids.sort, jobs.map(&:value).sort)
    end
  end

  def test_status_wait
    reactor do
      pid = child("exit 6")

      assert_equal(6, Process::Status.wait(pid).exitstatus)
      assert_equal(-1, Process::Status.wait(pid)&.pid || -1)
    end
  end

  def test_detach
    reactor do
      pid = child("sleep 0.05; exit 7")

      assert_equal(7, Process.detach(pid).value.exitstatus)
    end
  end

  def test_system
    reactor do
      assert(assert_others_run { system("sleep 0.15") })
      refute(system("exit 3"))
      assert_equal(3, $?.exitstatus)
      assert_nil(system("/no/such/program"))
      assert_raises(RuntimeError) { system("exit 3", exception: true) }
    end
  end

  def test_backticks
    reactor do
      assert_equal("out\n", assert_others_run { `sleep 0.15; echo out` })
      assert_predicate($?, :success?)
      assert_equal("", `exit 4`)
      assert_equal(4, $?.exitstatus)
      assert_raises(Errno::ENOENT) { `/no/such/program` }
      assert_equal(500_000, `head -c 500000 /dev/zero`.bytesize)
    end
  end

  # The descriptor number of an interrupted wait may come back for another child.
  def test_an_interrupted_wait_can_be_repeated
    heddle_only("the fiber is interrupted")
    reactor do
      pid = child("read line; exit 8", in: (reader, writer = pipe)[0])
      20.times do
        job = go do
          Process.wait(pid)
        rescue ZeroDivisionError
          :interrupted
        end
        settle
        job.fiber.raise(ZeroDivisionError)

        assert_equal(:interrupted, job.value)
        assert_equal(9, Process.wait2(child("exit 9")).last.exitstatus)
      end
      reader.close
      writer.close

      assert_equal(8, Process.wait2(pid).last.exitstatus)
    end
  end

  def test_wait_with_a_timeout
    require "timeout"
    reactor do
      reader, writer = pipe
      pid = child("read x; exit 2", in: reader)
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Process.wait(pid) } }
      writer.puts

      assert_equal(2, Process.wait2(pid).last.exitstatus)
    end
  end

  def test_no_descriptor_is_left
    reactor do
      Process.wait(child)
      before = descriptor_count
      10.times { Process.wait(child) }
      Array.new(10) { go { Process.wait(child("sleep 0.05")) } }.each(&:value)

      assert_equal(before, descriptor_count)
    end
  end

  def test_a_hundred_children
    reactor do
      jobs = Array.new(100) { |i| go { Process.wait2(spawn("exit #{i}")).last.exitstatus } }

      assert_equal((0...100).to_a, jobs.map(&:value))
    end
  end
end
