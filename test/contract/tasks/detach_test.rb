# frozen_string_literal: true

require "stringio"

require_relative "../../test_helper"

# Heddle.detach: tasks that belong to the process.
contract "Detach" do
  heddle_only "Heddle.detach"

  def setup
    super
    @before = ENV.fetch("HEDDLE_BACKEND", nil)
    ENV["HEDDLE_BACKEND"] = backend
  end

  def teardown
    ENV["HEDDLE_BACKEND"] = @before
    wait_until("the end of their thread") { Thread.list.none? { |thread| thread.name == "heddle detached" } }
    super
  end

  def test_it_survives_its_scope
    gate = Thread::Queue.new
    task = nil
    request = nil
    run do
      request = Heddle.spawn { Heddle.scope { (task = Heddle.detach("audit") { gate.pop }) && sleep } }
      sleep(0.001) until task
      request.cancel.wait
    end

    assert_predicate(task, :alive?)
    gate << :written

    assert_equal([:written, "audit"], [task.value, task.name])
  end

  def test_with_and_without_a_run
    threads = [Heddle.detach { Thread.current }, run { Heddle.detach { Thread.current } },
               Thread.new { Heddle.detach { sleep(0.001) && Thread.current } }.value]

    refute_includes(threads.map(&:value), Thread.current)
    assert_equal([backend], threads.map { |_| Heddle.detach { Fiber.scheduler.backend }.value }.uniq)
  end

  def test_they_share_a_thread
    gate = Thread::Queue.new
    tasks = Array.new(20) { Heddle.detach { gate.pop && Thread.current } }
    20.times { gate << true }

    assert_equal(1, tasks.map(&:value).uniq.size)
  end

  def test_one_failure_ends_no_other
    gate = Thread::Queue.new
    other = Heddle.detach { gate.pop }
    failed = Heddle.detach { Heddle.spawn { raise IOError, "down" } && sleep }

    assert_raises(IOError) { failed.value }
    gate << :other

    assert_same(:other, other.value)
  end

  def test_an_error_that_nobody_asks_for_is_reported
    reported = Thread::Queue.new
    Heddle.on_error { |error, task| reported << [error.message, task.name] }
    Heddle.detach("mail") { raise IOError, "no answer" }

    assert_equal(["no answer", "mail"], reported.pop)
  ensure
    Heddle.on_error(nil)
  end

  def test_storage_and_reports
    Fiber[:detach_test] = 7
    gate = Thread::Queue.new
    task = Heddle.detach("audit") { gate.pop && Fiber[:detach_test] }
    sleep(0.001) until gate.num_waiting == 1
    dump = StringIO.new
    Heddle.dump(dump)
    gate << true

    assert_match(/^task "audit": waits for an item of/, dump.string)
    assert_equal(7, task.value)
  ensure
    Fiber[:detach_test] = nil
  end

  # Each of them may find that the run of the others has just ended.
  def test_one_after_the_other
    assert_equal((0...50).to_a, Array.new(50) { |i| Heddle.detach { i }.value })
    threads = Array.new(4) { |n| Thread.new { Array.new(25) { |i| Heddle.detach { (n * 25) + i }.value } } }

    assert_equal((0...100).to_a, threads.flat_map(&:value))
  end

  def test_drain
    ended = []
    Heddle.detach { ended << 1 }
    Heddle.drain

    assert_equal([1], ended)
    Heddle.detach do
      sleep
    ensure
      ended << 2
    end
    Heddle.drain(grace: 0.01)

    assert_equal([1, 2], ended)
    assert_raises(ArgumentError) { Heddle.drain(grace: "long") }
  end

  def test_a_cancel
    task = Heddle.detach { sleep }
    task.cancel.wait

    assert_predicate(task, :cancelled?)
  end

  def program(code)
    outcome = run_command(*ruby_command, "-r", "heddle", "-e", code)

    assert_predicate(outcome, :success?, outcome.err)
    outcome.out
  end

  def test_they_end_before_the_program
    assert_equal("end of the program\nwritten\n", program(<<~RUBY))
      Heddle.run { Heddle.detach { sleep(0.1) && puts("written") } }
      puts "end of the program"
    RUBY
  end

  def test_they_are_cancelled_after_the_grace_period
    assert_equal("cleaned up\n", program(<<~RUBY))
      Heddle::Scope.send(:remove_const, :GRACE)
      Heddle::Scope::GRACE = 0.1
      Heddle.detach do
        sleep
      ensure
        sleep(0.01) && puts("cleaned up")
      end
    RUBY
  end

  def test_in_the_child_of_a_fork
    assert_equal("child\nlate child\nparent\n", program(<<~RUBY))
      gate = Queue.new
      task = Heddle.detach { gate.pop && puts("parent") }
      Process.wait(fork do
        Heddle.detach { puts "child" }.value
        Heddle.detach { sleep(0.01) && puts("late child") }
      end)
      gate << true
    RUBY
  end

  def test_arguments
    assert_match(/Heddle.detach needs a block/, assert_raises(ArgumentError) { Heddle.detach }.message)
    assert_match(/\Aname: /, assert_raises(ArgumentError) { Heddle.detach(7) { nil } }.message)
  end
end
