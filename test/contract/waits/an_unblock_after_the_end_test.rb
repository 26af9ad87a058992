# frozen_string_literal: true

require_relative "../../test_helper"

# unblock may come when the scheduler is closed, or for a fiber that has ended: it does nothing.
contract "LateUnblock" do
  heddle_only "a matter of the scheduler"

  def test_after_close
    scheduler = fiber = nil
    Thread.new do
      scheduler = Heddle::Scheduler.new(backend: backend)
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { (fiber = Fiber.current) && sleep(0) }
    end.join

    assert_predicate(scheduler, :closed?)
    scheduler.unblock(:anything, fiber)
    Thread.new { scheduler.unblock(:anything, fiber) }.join
  end

  def test_for_a_fiber_that_has_ended
    reactor do
      job = go { 1 }
      job.value
      Fiber.scheduler.unblock(:anything, job.fiber)
    end
  end

  def test_for_a_foreign_fiber
    reactor do
      foreign = Fiber.new { 1 }
      Fiber.scheduler.unblock(:anything, foreign)

      assert_equal(1, foreign.resume)
    end
  end

  # Hazard: raised in the other thread's Mutex#unlock.
  def test_a_mutex_is_unlocked_after_the_scheduler_of_its_waiter_is_gone
    mutex = Thread::Mutex.new
    locked = Thread::Queue.new
    finish = Thread::Queue.new
    owner = Thread.new { mutex.synchronize { locked.push(1) && finish.pop } }
    locked.pop
    name = backend
    waiter = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) { mutex.synchronize { nil } }
    end
    sleep(0.05)
    waiter.kill
    waiter.join
    finish.push(1)
    owner.join

    refute_predicate(mutex, :locked?)
  end

  # A fiber woken from another thread at the very moment when the scheduler goes to sleep is not forgotten.
  def test_no_wake_is_lost_between_threads
    reactor do
      ping = Thread::Queue.new
      pong = Thread::Queue.new
      thread = Thread.new { 3000.times { pong.push(ping.pop) } }
      3000.times { |i| ping.push(i) && assert_equal(i, pong.pop) }
      thread.join
    end
  end

  def test_many_threads_wake_many_fibers
    reactor do
      queues = Array.new(20) { Thread::Queue.new }
      jobs = queues.map { |queue| go { Array.new(100) { queue.pop }.sum } }
      threads = Array.new(4) { Thread.new { 25.times { queues.shuffle.each { |queue| queue.push(1) } } } }

      assert_equal([100] * 20, jobs.map(&:value))
      threads.each(&:join)
    end
  end
end
