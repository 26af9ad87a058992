# frozen_string_literal: true

require_relative "../../test_helper"

# When a fiber ends, Ruby gives control to the thread's own fiber, not to the fiber that has called Fiber#transfer. Here
# that would be the scheduler's, and the task would never go on. In a thread the task's code is the thread's own fiber.
contract "TransferredFiber" do
  heddle_only "the fiber of a task"

  # Runs the block in the main block, in a task that has just begun, in one that has waited, in another thread, in a
  # fiber of Fiber.schedule, and on the root fiber under set_scheduler. Returns what it has returned, six times.
  def everywhere(&block)
    name = backend
    results = [Heddle.run(backend: name, &block), Heddle.run(backend: name) { Heddle.spawn(&block).value }]
    results << Heddle.run(backend: name) { Heddle.spawn { sleep(0.001).then(&block) }.value }
    results << Thread.new { Heddle.run(backend: name) { Heddle.spawn(&block).value } }.value
    results << under_set_scheduler { |&work| Fiber.schedule(&work) }.call(&block)
    results << under_set_scheduler { |&work| Fiber.new(&work).resume }.call(&block)
  end

  # Has the block called in a thread of its own, whose scheduler runs when the block has been started.
  def under_set_scheduler(&start)
    name = backend
    lambda do |&block|
      result = nil
      Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        start.call { result = block.call }
      end.join
      result
    end
  end

  def test_its_value_comes_back
    assert_equal([3] * 6, everywhere { Fiber.new { 3 }.transfer })
  end

  def test_it_waits_before_it_ends
    assert_equal([3] * 6, everywhere { Fiber.new { sleep(0.002) && 3 }.transfer })
  end

  def test_its_error_comes_back
    results = everywhere do
      Fiber.new { raise KeyError, "here" }.transfer
    rescue KeyError => e
      [e.message, e.backtrace.first[/\w+\.rb/]]
    end

    assert_equal([["here", File.basename(__FILE__)]] * 6, results)
  end

  def test_an_error_after_a_wait_comes_back
    results = everywhere do
      Fiber.new { sleep(0.002) && raise(KeyError, "here") }.transfer
    rescue KeyError => e
      e.message
    end

    assert_equal(["here"] * 6, results)
  end

  # An error that passes the fiber of the block on its way to the task leaves no trace there.
  def test_the_block_that_waits_in_a_rescue_clause_keeps_its_error
    seen = Heddle.run(backend:) do
      raise KeyError, "of the block"
    rescue KeyError
      task = Heddle.spawn { assert_raises(IOError) { Fiber.new { sleep(0.002) && raise(IOError, "there") }.transfer } }
      [sleep(0.001) && $!.message, task.value.message, $!.message]
    end

    assert_equal(["of the block", "there", "of the block"], seen)
  end

  def test_one_after_another
    results = everywhere do
      Array.new(50) do |n|
        Fiber.new { n.odd? ? n : raise(n.to_s) }.transfer
      rescue RuntimeError => e
        Integer(e.message)
      end
    end

    assert_equal([Array(0...50)] * 6, results)
  end

  def test_one_enters_another
    results = everywhere do
      inner = nil
      outer = Fiber.new { [:outer, inner.transfer] }
      inner = Fiber.new { sleep(0.001) && :inner }
      outer.transfer
    end

    assert_equal([:inner] * 6, results, "as in a thread, whoever ends gives control to the code that has begun it all")
  end

  def test_one_that_transfers_back_still_does
    results = everywhere do
      task = Fiber.current
      Fiber.new { sleep(0.001) && task.transfer(4) && flunk("nobody enters it again") }.transfer
    end

    assert_equal([4] * 6, results)
  end

  def test_many_tasks_at_once
    values = Heddle.run(backend:) do
      Heddle.map(1..100) { |n| Fiber.new { (n.odd? ? sleep(0.001 * (n % 7)) : 0) && n }.transfer + 1 }
    end

    assert_equal(Array(2..101), values)
  end

  def test_a_fiber_that_was_resumed_and_has_transferred_is_told
    everywhere do
      in_between = Fiber.new do
        Fiber.new { 3 }.transfer
      rescue FiberError => e
        e.message
      end
      value = in_between.resume

      assert(value == 3 || value.include?("let it transfer back"), "a thread's own fiber gets the value")
    end
  end

  def test_the_error_of_its_fiber_reaches_one_that_was_resumed
    results = everywhere do
      Fiber.new do
        Fiber.new { raise "here" }.transfer
      rescue RuntimeError => e
        e.message
      end.resume
    end

    assert_equal(["here"] * 6, results)
  end

  def test_a_cancel_strikes_in_it_and_the_task_ends
    seen = []
    Heddle.run(backend:) do
      task = Heddle.spawn do
        Fiber.new { sleep }.transfer
      ensure
        seen << Heddle::Cancelled
      end
      task.cancel
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([Heddle::Cancelled], seen)
  end

  def test_a_timeout_strikes_in_it
    results = everywhere do
      Heddle.timeout(0.01) { Fiber.new { sleep }.transfer }
    rescue Timeout::Error
      :late
    end

    assert_equal([:late] * 6, results)
  end

  def test_one_is_entered_by_a_fiber_that_was_struck
    seen = []
    name = backend
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
      waiting = Fiber.schedule do
        sleep
      rescue KeyError
        seen << Fiber.new { :value }.transfer << Fiber.new { sleep(0.001) && :later }.transfer
      end
      waiting.raise(KeyError)
      seen << :goes_on
    end.join

    assert_equal(%i[value goes_on later], seen)
  end

  def test_a_child_process_of_its_goes_on
    status = Heddle.run(backend:) do
      Heddle.spawn do
        Fiber.new { Process.wait(fork { exit!(7) }) && $?.exitstatus }.transfer
      end.value
    end

    assert_equal(7, status)
  end

  def test_a_fork_within_it_ends
    status = Heddle.run(backend:) do
      Heddle.spawn do
        pid = Fiber.new { fork { Heddle.run { Fiber.new { sleep(0.001) }.transfer } && exit!(8) } }.transfer
        Process.wait(pid) && $?.exitstatus
      end.value
    end

    assert_equal(8, status)
  end
end
