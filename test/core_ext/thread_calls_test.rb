# frozen_string_literal: true

require_relative "../test_helper"

# Exceptions that are sent to a thread that runs a scheduler, and Thread.stop in a task.
contract "ThreadCalls" do
  heddle_only "schedulers"

  def test_raise_reaches_heddle_run
    started = Thread::Queue.new
    thread = Thread.new do
      Heddle.run(backend: backend) do
        Fiber.schedule { sleep }
        started << true
        sleep
      end
    rescue ZeroDivisionError => e
      e.message
    end
    started.pop
    thread.raise(ZeroDivisionError, "text")

    assert_equal("text", thread.value)
  end

  %i[wakeup run].each do |name|
    define_method("test_#{name}_ends_the_sleep_of_the_main_block") do
      started = Thread::Queue.new
      thread = Thread.new do
        Heddle.run(backend: backend) do
          task = Heddle.spawn { sleep(60) }
          started << true
          sleep
          task.cancel
          :woken
        end
      end
      started.pop
      thread.__send__(name) until thread.join(0.01)

      assert_equal(:woken, thread.value)
    end
  end

  def test_stop_stops_one_task
    reactor do
      task = Heddle.spawn { Thread.stop }
      other = Heddle.spawn { sleep(0.01) && :ran }

      assert_equal(:ran, other.value)
      refute_predicate(task, :finished?)
      task.cancel
    end
  end
end
