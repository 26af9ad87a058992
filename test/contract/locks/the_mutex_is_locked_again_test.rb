# frozen_string_literal: true

require_relative "../../test_helper"

# Mutex#sleep and ConditionVariable#wait lock their Mutex again before they end. Nothing strikes the task meanwhile, as
# with threads: or it would go on in its critical section without the lock.
contract "LockAgain" do
  {
    "mutex_sleep" => ->(mutex, _condition) { mutex.sleep(0.03) },
    "mutex_sleep_without_a_limit" => ->(mutex, _condition) { mutex.sleep },
    "condition_wait" => ->(mutex, condition) { condition.wait(mutex) },
    "condition_wait_with_a_limit" => ->(mutex, condition) { condition.wait(mutex, 5) }
  }.each do |name, wait|
    define_method("test_a_timeout_during_#{name}") do
      log = []
      reactor do
        mutex = Thread::Mutex.new
        condition = Thread::ConditionVariable.new
        sleeper = go do
          mutex.synchronize do
            Timeout.timeout(0.08) { wait.call(mutex, condition) }
          rescue Timeout::Error
            log << [:struck, mutex.owned?]
          end
        end
        settle
        other = go { hold(mutex, condition, sleeper, log) }
        [sleeper, other].each(&:value)
      end

      assert_equal([:other_ends, [:struck, true]], log)
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

  # Holds the lock for longer than the sleeper's time.
  def hold(mutex, condition, sleeper, log)
    mutex.synchronize do
      condition.signal
      reference? ? @threads.first.wakeup : Fiber.scheduler.unblock(nil, sleeper.fiber)
      sleep(0.2)
      log << :other_ends
    end
  end
end
