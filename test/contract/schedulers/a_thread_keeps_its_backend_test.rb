# frozen_string_literal: true

# bin/test: takes 13 s, 0.3 of a core

require_relative "../../test_helper"
require_relative "../../support/forks"

# A thread keeps the backend of a Heddle.run for its next one, and gives it back in the end.
contract "KeptBackend" do
  include TestSupport::Forks

  heddle_only "schedulers"

  def run_once(&block) = Heddle.run(backend: backend, &block || -> { sleep(0.001) })

  # The descriptors of backends in this process: rings, epoll sets, and the descriptors that wake them. Ruby has one of
  # each.
  def backends_open
    skip("libkqueue has descriptors of its own, and closes them later") if libkqueue?
    TestSupport::Leaks.descriptors.values.grep(/anon_inode:\[(?:io_uring|eventpoll|eventfd)\]/).size
  end

  # A backend has one for the kernel's watch, which poll(2) does without, and one that wakes it.
  def descriptors = backend == "poll" ? 1 : 2

  def in_thread(&) = Thread.new(&).value

  def test_a_thousand_runs_use_the_same
    in_thread do
      run_once
      before = TestSupport::Leaks.descriptors

      1000.times { |i| assert_equal(i, run_once { i }) }
      10.times { run_once }

      assert_equal(before, TestSupport::Leaks.descriptors)
    end
  end

  def test_it_is_closed_when_its_thread_ends
    before = backends_open

    assert_equal(before + descriptors, in_thread { run_once && backends_open })
    assert_equal(before, backends_open)
    10.times { in_thread { run_once } }

    assert_equal(before, backends_open)
  end

  def test_however_its_thread_ends
    before = backends_open
    endings = [-> { raise "over" }, -> { Thread.exit }, -> { Thread.current.kill }, -> { throw(:nothing) }]
    endings.each do |ending|
      thread = Thread.new do
        Thread.current.report_on_exception = false
        run_once
        ending.call
      end
      thread.join rescue nil # rubocop:disable Style/RescueModifier

      assert_equal(before, backends_open)
    end
  end

  def test_a_run_after_one_that_failed
    in_thread do
      reader, writer = IO.pipe
      10.times do
        assert_raises(RuntimeError) { run_once { Heddle.spawn { reader.read } && raise("over") } }
        assert_equal("x", run_once { Heddle.spawn { reader.read(1) }.tap { sleep(0.001) && writer.write("x") }.value })
      end
    ensure
      [reader, writer].each(&:close)
    end
  end

  # What the last run has waited for is not told to the next one.
  def test_cancelled_waits_are_forgotten
    in_thread do
      pipes = Array.new(50) { IO.pipe }
      5.times do
        run_once do
          tasks = pipes.map { |reader, _| Heddle.spawn { reader.wait_readable } }
          sleep(0.001)
          tasks.each(&:cancel)
        end
        pipes.each { |_, writer| writer.write("x") }

        assert_nil(run_once { Heddle.spawn { Thread::Queue.new.pop(timeout: 0.02) }.value })
        texts = run_once { pipes.map { |reader, _| Heddle.spawn { reader.readpartial(9) } }.map(&:value) }

        assert_equal(["x"] * 50, texts)
      end
    ensure
      pipes.flatten.each(&:close)
    end
  end

  # A request that is left in the kernel would hold the file open.
  def test_the_peer_sees_the_end
    in_thread do
      ours, theirs = Socket.pair(:UNIX, :STREAM)
      run_once { Heddle.spawn { ours.read(1) }.tap { sleep(0.001) }.cancel }
      ours.close

      assert_equal("", theirs.read)
      theirs.close
    end
  end

  def test_a_run_after_a_kill
    before = backends_open
    thread = Thread.new { run_once { sleep } }
    sleep(0.01) until thread.stop?
    thread.kill.join

    assert_equal(before, backends_open)
    assert_equal(:fine, in_thread { run_once { :fine } })
  end

  def test_in_many_threads_at_once
    before = backends_open
    threads = Array.new(20) { |i| Thread.new { Array.new(20) { |j| run_once { sleep(0.0001) && (i + j) } }.sum } }

    assert_equal(Array.new(20) { |i| (20 * i) + 190 }, threads.map(&:value))
    assert_equal(before, backends_open)
  end

  def test_the_child_of_a_fork_has_none
    in_thread do
      before = backends_open
      run_once

      inside = in_child { [backends_open, run_once { :fine }, backends_open] }

      assert_equal("[#{before}, :fine, #{before + descriptors}]", inside)
      assert_equal(before + descriptors, run_once { backends_open })
    end
  end

  def test_a_scheduler_that_is_set_by_hand_closes_it
    name = backend
    in_thread do
      before = backends_open
      run_once
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
      Fiber.schedule { sleep(0.001) }
      Fiber.set_scheduler(nil)

      assert_equal(before, backends_open)
    end
  end

  # There is little else that a later run costs.
  def test_a_later_run_makes_few_objects
    heddle_only("Heddle.run")
    in_thread do
      50.times { run_once }
      before = GC.stat(:total_allocated_objects)
      100.times { run_once }

      assert_operator(GC.stat(:total_allocated_objects) - before, :<, 1250)
    end
  end

  # After HD_KEPT_SECONDS (os/kept_backend.h).
  def test_an_idle_one_is_closed
    in_thread do
      before = backends_open
      run_once

      assert_equal(before + descriptors, backends_open)
      100.times { backends_open > before && sleep(0.2) }

      assert_equal(before, backends_open)
      assert_equal(:fine, run_once { sleep(0.001) && :fine })
    end
  end

  # Ruby has looked at the variable when it started.
  def test_a_thread_that_moves_keeps_none
    said = assert_script_of_moving_threads(<<~RUBY, heddle: false)
      ENV.delete("RUBY_MN_THREADS")
      require "heddle"
      count = -> { Dir.children("/proc/self/fd").size }
      Heddle.run(backend: #{backend.inspect}) { nil }
      Thread.new do
        before = count.call
        Heddle.run(backend: #{backend.inspect}) { nil }
        print(count.call - before)
      end.join
    RUBY

    assert_equal("0", said)
  end

  def test_while_the_garbage_collector_runs_all_the_time
    in_thread do
      GC.stress = true

      3.times { assert_equal(1, run_once { Heddle.spawn { sleep(0.001) && 1 }.value }) }
    ensure
      GC.stress = false
    end
  end
end
