# frozen_string_literal: true

require_relative "../../test_helper"

# Thread::Mutex between fibers and threads.
contract "Mutex" do
  # Hazard: hangs in two published schedulers.
  def test_fifty_fibers_with_a_sleep_inside
    reactor do
      mutex = Thread::Mutex.new
      inside = 0
      most = 0
      jobs = Array.new(50) do
        go do
          mutex.synchronize do
            inside += 1
            most = [most, inside].max
            sleep(0.001)
            inside -= 1
          end
        end
      end
      jobs.each(&:value)

      assert_equal(1, most)
    end
  end

  def test_lock_waits_for_unlock
    reactor do
      mutex = Thread::Mutex.new
      mutex.lock
      job = go { mutex.synchronize { :inside } }
      settle

      refute_predicate(job, :finished?)
      assert_predicate(mutex, :owned?)
      mutex.unlock

      assert_equal(:inside, job.value)
    end
  end

  def test_the_owner_is_the_fiber
    reactor do
      mutex = Thread::Mutex.new
      mutex.synchronize do
        go do
          refute_predicate(mutex, :owned?)
          refute(mutex.try_lock)
          assert_raises(ThreadError) { mutex.unlock }
        end.value
        assert_raises(ThreadError) { mutex.lock }
      end
    end
  end

  def test_sleep_releases_the_lock
    reactor do
      mutex = Thread::Mutex.new
      mutex.lock
      job = go { mutex.synchronize { :inside } }
      mutex.sleep(0.05)

      assert_equal(:inside, job.value)
      assert_predicate(mutex, :owned?)
      mutex.unlock
    end
  end

  # Ruby bug 20907: the lock was not taken again when the sleep was interrupted.
  def test_sleep_locks_again_when_it_is_interrupted
    heddle_only("the fiber is interrupted")
    reactor do
      mutex = Thread::Mutex.new
      owned = nil
      job = go do
        mutex.synchronize do
          mutex.sleep
        rescue ZeroDivisionError
          owned = mutex.owned?
        end
      end
      settle
      job.fiber.raise(ZeroDivisionError)
      job.value

      assert(owned)
      refute_predicate(mutex, :locked?)
    end
  end

  def test_across_threads
    reactor do
      mutex = Thread::Mutex.new
      counter = 0
      add = lambda do
        50.times { mutex.synchronize { counter.tap { |value| sleep(0) && (counter = value + 1) } } }
      end
      threads = Array.new(3) { Thread.new(&add) }
      jobs = Array.new(3) { go(&add) }
      jobs.each(&:value)
      threads.each(&:join)

      assert_equal(300, counter)
    end
  end

  def test_a_thread_that_holds_the_lock_does_not_stop_the_others
    reactor do
      mutex = Thread::Mutex.new
      held = Thread::Queue.new
      thread = Thread.new { mutex.synchronize { held.push(true) && sleep(0.15) } }
      held.pop
      assert_others_run { mutex.synchronize { nil } }
      thread.join
    end
  end

  def test_a_waiter_that_is_killed_leaves_the_queue
    heddle_only("fibers are killed")
    reactor do
      mutex = Thread::Mutex.new
      mutex.lock
      first = go { mutex.synchronize { :first } }
      second = go { mutex.synchronize { :second } }
      settle
      first.fiber.kill
      mutex.unlock

      assert_equal(:second, second.value)
      assert_nil(first.value)
    end
  end

  def test_two_locks_taken_crosswise_with_try_lock
    reactor do
      one, two = Array.new(2) { Thread::Mutex.new }
      jobs = [[one, two], [two, one]].map do |first, second|
        go do
          done = false
          until done
            first.synchronize do
              sleep(0)
              done = second.try_lock
              second.unlock if done
            end
            sleep(0.001 * rand) unless done
          end
        end
      end
      jobs.each(&:value)
    end
  end
end
