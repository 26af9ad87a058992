# frozen_string_literal: true

require_relative "../../test_helper"

# Thread#join and Thread#value called in a fiber.
contract "ThreadJoin" do
  def test_join_and_value_wait
    reactor do
      thread = Thread.new { sleep(0.12) && :value }

      assert_same(thread, assert_others_run { thread.join })
      assert_equal(:value, thread.value)
      assert_equal(:other, Thread.new { sleep(0.02) && :other }.value)
    end
  end

  def test_join_with_a_timeout
    reactor do
      stop = Thread::Queue.new
      thread = Thread.new { stop.pop }
      result = :none
      taken = elapsed { result = thread.join(0.05) }

      assert_nil(result)
      assert_operator(taken, :>=, 0.05)
      assert_operator(taken, :<, 25)
      assert_nil(thread.join(0))
      stop.push(1)

      assert_same(thread, thread.join(20))
      assert_same(thread, thread.join(0))
    end
  end

  # Hazard: on Ruby <= 3.4 any early return of the hook counts as a timeout.
  def test_a_stale_unblock_does_not_end_a_join
    heddle_only("the hook is called directly")
    reactor do
      stop = Thread::Queue.new
      thread = Thread.new { stop.pop }
      mutex = Thread::Mutex.new
      mutex.lock
      job = go do
        mutex.synchronize { nil }
        thread.join(20)
      end
      settle
      mutex.unlock
      settle
      Fiber.scheduler.unblock(mutex, job.fiber) # once more, now that it waits for something else
      settle
      # The wake may be let through (then Ruby <= 3.4 would say nil): it must not be.
      refute_predicate(job, :finished?)
      stop.push(1)

      assert_same(thread, job.value)
    end
  end

  def test_a_failing_thread
    reactor do
      thread = Thread.new do
        Thread.current.report_on_exception = false
        raise ZeroDivisionError, "inside"
      end

      assert_raises(ZeroDivisionError) { thread.join }
      assert_raises(ZeroDivisionError) { thread.value }
    end
  end

  def test_many_join_the_same_thread
    reactor do
      stop = Thread::Queue.new
      thread = Thread.new { stop.pop }
      jobs = Array.new(10) { go { thread.value } }
      settle
      stop.push(:end)

      assert_equal([:end] * 10, jobs.map(&:value))
    end
  end

  def test_join_of_a_thread_with_a_scheduler_of_its_own
    reactor do
      name = reference? ? nil : backend
      thread = Thread.new { name ? Heddle.run(backend: name) { sleep(0.05) && :inner } : :inner }

      assert_equal(:inner, thread.value)
    end
  end
end
