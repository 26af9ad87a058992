# frozen_string_literal: true

require "monitor"
require_relative "../test_helper"

# Mutex#sleep and ConditionVariable#wait return nil when their timeout ends them, and else a true value.
contract "MutexSleep" do
  def test_condition_wait_that_times_out
    reactor do
      mutex = Thread::Mutex.new
      answer = mutex.synchronize { Thread::ConditionVariable.new.wait(mutex, 0.02) }

      assert_nil(answer)
      refute_predicate(mutex, :locked?)
    end
  end

  def test_condition_wait_that_is_signaled
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      job = go { mutex.synchronize { condition.wait(mutex, 20) } }
      untimed = go { mutex.synchronize { condition.wait(mutex) } }
      settle
      mutex.synchronize { condition.broadcast }

      refute_nil(job.value)
      refute_nil(untimed.value)
    end
  end

  # It is the end of the sleep that counts, not that of the wait for the lock.
  def test_condition_wait_whose_lock_is_taken
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      job = go { mutex.synchronize { condition.wait(mutex, 0.5) } }
      settle
      mutex.synchronize do
        condition.signal
        sleep(0.7)
      end

      refute_nil(job.value)
    end
  end

  def test_mutex_sleep
    reactor do
      mutex = Thread::Mutex.new
      mutex.lock

      assert_nil(mutex.sleep(0.01))
      assert_nil(mutex.sleep(0))
      assert_predicate(mutex, :owned?)
      mutex.unlock
      assert_raises(ThreadError) { mutex.sleep(0.01) }
      assert_raises(ArgumentError) { mutex.synchronize { mutex.sleep(-1) } }
      assert_raises(ArgumentError) { mutex.synchronize { mutex.sleep(1, 2) } }
    end
  end

  # A sleep of its own after one that raised, and many at once.
  def test_each_sleep_has_its_own_answer
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      assert_raises(ThreadError) { mutex.sleep(0.01) }

      assert_kind_of(Integer, sleep(0.01))
      short = Array.new(5) { go { mutex.synchronize { condition.wait(mutex, 0.02) } } }
      answers = short.map(&:value)
      long = Array.new(5) { go { mutex.synchronize { condition.wait(mutex, 20) } } }
      settle
      mutex.synchronize { condition.broadcast }

      assert_equal([nil] * 5, answers)
      refute_includes(long.map(&:value), nil)
    end
  end

  # What the object answers that stands in for the mutex is passed on.
  def test_a_lock_of_another_class
    lock = Object.new
    def lock.sleep(seconds) = [Kernel.sleep(seconds), :mine].last

    reactor { assert_equal(:mine, Thread::ConditionVariable.new.wait(lock, 0.01)) }
  end

  def test_a_monitors_condition
    reactor do
      monitor = Monitor.new
      condition = monitor.new_cond

      refute(monitor.synchronize { condition.wait(0.01) })
      job = go { monitor.synchronize { condition.wait(20) } }
      settle
      monitor.synchronize { condition.signal }

      assert(job.value)
    end
  end
end
