# frozen_string_literal: true

require_relative "../../test_helper"

# Mutex#sleep and ConditionVariable#wait lock their Mutex again before they end. Nothing is raised in the task
# meanwhile, as with threads: or it would go on in its critical section without the lock.
contract "LockAgain" do
  {
    "mutex_sleep" => ->(mutex, _condition, limit) { mutex.sleep(limit / 2) },
    "mutex_sleep_without_a_limit" => ->(mutex, _condition, _limit) { mutex.sleep },
    "condition_wait" => ->(mutex, condition, _limit) { condition.wait(mutex) },
    "condition_wait_with_a_limit" => ->(mutex, condition, limit) { condition.wait(mutex, limit * 10) }
  }.each do |name, wait|
    define_method("test_a_timeout_during_#{name}") do
      log = nil
      in_time { |limit| (log = log_of(wait, limit)).first == :other_holds }

      assert_equal([:other_holds, :other_ends, [:raised, true]], log)
    end
  end

  def test_a_cancel
    heddle_only("cancels of tasks")
    log = []
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      task = Heddle.spawn do
        mutex.synchronize do
          condition.wait(mutex)
        ensure
          log << mutex.owned?
        end
      end
      mutex.synchronize do
        condition.signal
        sleep(0.01)
        task.cancel
        sleep(0.01)
      end
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([true], log)
  end

  private

  # A task waits, another one takes the lock meanwhile and holds it until the first one's time is over.
  def log_of(wait, limit)
    log = []
    reactor do
      mutex = Thread::Mutex.new
      condition = Thread::ConditionVariable.new
      started = now
      sleeper = go do
        mutex.synchronize do
          Timeout.timeout(limit) { wait.call(mutex, condition, limit) }
        rescue Timeout::Error
          log << [:raised, mutex.owned?]
        end
      end
      settle
      other = go do
        mutex.synchronize do
          wake(condition, sleeper)
          log << :other_holds if now < started + (limit / 2)
          sleep(limit * 2)
          log << :other_ends
        end
      end
      [sleeper, other].each(&:value)
    end
    log
  end

  def wake(condition, sleeper)
    condition.signal
    reference? ? @threads.first.wakeup : Fiber.scheduler.unblock(nil, sleeper.fiber)
  end
end
