# frozen_string_literal: true

require_relative "../../test_helper"

# Thread#wakeup and Thread#run end the sleep of the main block, as that of a plain thread. The tasks sleep on.
contract "ThreadWakeup" do
  # What the thread does, in a main block under Heddle.
  def sleeper(&block)
    name = backend
    ready = Thread::Queue.new
    body = -> { (ready << true) && block.call }
    thread = Thread.new do
      Thread.current.report_on_exception = false
      reference? ? body.call : Heddle.run(backend: name, &body)
    end
    ready.pop
    wait_until { thread.stop? }
    thread
  end

  def assert_woken(thread, by)
    thread.__send__(by)

    assert(thread.join(60), "#{by} does not end it")
    thread.value
  ensure
    thread.kill
  end

  %i[wakeup run].each do |by|
    define_method("test_#{by}_ends_sleep") { assert_equal(:went_on, assert_woken(sleeper { sleep && :went_on }, by)) }

    define_method("test_#{by}_ends_sleep_with_a_duration") { assert_woken(sleeper { sleep(60) }, by) }

    define_method("test_#{by}_ends_thread_stop") { assert_woken(sleeper { Thread.stop }, by) }

    define_method("test_#{by}_ends_mutex_sleep") do
      lock = Thread::Mutex.new

      assert_woken(sleeper { lock.synchronize { lock.sleep } }, by)
    end
  end

  def test_a_condition_variable
    [[], [60]].each do |limit|
      thread = sleeper do
        lock = Thread::Mutex.new
        lock.synchronize { Thread::ConditionVariable.new.wait(lock, *limit) }
      end

      assert_woken(thread, :wakeup)
    end
  end

  def test_in_a_fiber_that_the_main_block_has_resumed
    assert_woken(sleeper { Fiber.new { sleep }.resume }, :wakeup)
  end

  def test_it_returns_the_thread_and_fails_for_a_dead_one
    thread = sleeper { sleep }

    assert_same(thread, thread.wakeup)
    thread.join
    assert_raises(ThreadError) { thread.wakeup }
    assert_raises(ThreadError) { thread.run }
  end

  def test_tasks_sleep_on
    heddle_only("tasks")
    woken = []
    thread = sleeper do
      task = Heddle.spawn { sleep(1) && (woken << :task) }
      sleep
      woken << :main
      task.wait
    end

    assert_woken(thread, :wakeup)

    assert_equal(%i[main task], woken)
  end

  def test_a_wait_for_something_else_goes_on
    queue = Thread::Queue.new
    thread = sleeper { queue.pop }
    thread.wakeup
    sleep(0.02)
    queue << :item

    assert_equal(:item, thread.value)
  end

  def test_the_others_go_on_while_a_task_has_stopped
    heddle_only("tasks")
    turns = 0
    thread = sleeper do
      Heddle.spawn { 3.times { sleep(0.001) && (turns += 1) } }
      Thread.stop
    end

    wait_until("the task has run") { turns == 3 }

    assert_woken(thread, :run)
  end
end
