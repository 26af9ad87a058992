# frozen_string_literal: true

require "monitor"
require_relative "../../test_helper"

# Thread::ConditionVariable and Monitor between fibers and threads.
contract "ConditionVariable" do
  def test_signal_wakes_one
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      jobs = Array.new(3) { go { mutex.synchronize { condition.wait(mutex) } } }
      settle
      mutex.synchronize { condition.signal }
      wait_until { jobs.one?(&:finished?) }
      settle

      assert_equal(1, jobs.count(&:finished?))
      mutex.synchronize { condition.broadcast }
      jobs.each(&:value)
    end
  end

  # Up to Ruby 3.4 the wait calls the method sleep of the mutex, which may be the program's.
  def test_a_mutex_that_sleeps_for_itself
    reactor do
      mutex = Class.new(Thread::Mutex) { def sleep(...) = super.tap { Kernel.sleep(0.01) } }.new
      condition = Thread::ConditionVariable.new
      job = go { mutex.synchronize { condition.wait(mutex, 20) } }
      settle
      mutex.synchronize { condition.signal }

      assert(job.value)
    end
  end

  def test_wait_releases_the_lock_and_takes_it_again
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      ready = false
      job = go do
        mutex.synchronize do
          condition.wait(mutex) until ready
          mutex.owned?
        end
      end
      settle
      mutex.synchronize { (ready = true) && condition.signal }

      assert(job.value)
    end
  end

  def test_wait_with_a_timeout
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      taken = elapsed { mutex.synchronize { condition.wait(mutex, 0.05) } }

      assert_operator(taken, :>=, 0.05)
      assert_operator(taken, :<, 25)
      refute_predicate(mutex, :locked?)
    end
  end

  def test_a_signal_before_the_timeout
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      job = go { mutex.synchronize { condition.wait(mutex, 20) } }
      settle
      mutex.synchronize { condition.signal }
      job.value
    end
  end

  # A waiter of which the time is over is no longer there for a later signal.
  def test_a_late_signal_goes_to_the_other_waiter
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      short = go { mutex.synchronize { condition.wait(mutex, 0.02) } }
      long = go { mutex.synchronize { condition.wait(mutex, 20) } }
      short.value
      settle

      refute_predicate(long, :finished?)
      mutex.synchronize { condition.signal }
      long.value
    end
  end

  def test_signal_from_another_thread
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      value = nil
      thread = Thread.new { sleep(0.1) && mutex.synchronize { (value = 1) && condition.signal } }
      assert_others_run { mutex.synchronize { condition.wait(mutex) until value } }
      thread.join
    end
  end

  def test_signal_to_another_thread
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      value = nil
      thread = Thread.new { mutex.synchronize { (condition.wait(mutex) until value) || value } }
      sleep(0.02)
      mutex.synchronize { (value = 7) && condition.broadcast }

      assert_equal(7, thread.value)
    end
  end

  def test_monitor_is_reentrant_per_fiber
    reactor do
      monitor = Monitor.new
      order = []
      job = nil
      monitor.synchronize do
        job = go { monitor.synchronize { order << :other } }
        settle
        monitor.synchronize { order << :inner }

        assert_predicate(monitor, :mon_owned?)
        refute(go { monitor.mon_owned? }.value)
        refute(go { monitor.try_enter }.value)
      end
      job.value

      assert_equal(%i[inner other], order)
    end
  end

  def test_monitor_conditions
    reactor do
      monitor = Monitor.new
      condition = monitor.new_cond
      items = []
      consumer = go do
        monitor.synchronize do
          condition.wait_while { items.empty? }
          items.shift
        end
      end
      settle
      monitor.synchronize { (items << 1) && condition.signal }

      assert_equal(1, consumer.value)
      taken = elapsed { monitor.synchronize { condition.wait(0.05) } }

      assert_operator(taken, :>=, 0.05)
    end
  end

  def test_monitor_across_threads
    reactor do
      monitor = Monitor.new
      counter = 0
      add = -> { 50.times { monitor.synchronize { counter.tap { |value| sleep(0) && (counter = value + 1) } } } }
      threads = Array.new(2) { Thread.new(&add) }
      jobs = Array.new(2) { go(&add) }
      jobs.each(&:value)
      threads.each(&:join)

      assert_equal(200, counter)
    end
  end
end
