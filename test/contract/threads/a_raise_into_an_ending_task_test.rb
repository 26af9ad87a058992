# frozen_string_literal: true

# bin/test: takes 18 s, 0.5 of a core

require_relative "../../test_helper"

# An exception that is sent to the thread (Thread#raise) comes when a task is just reporting its end: nobody waits for
# it for ever, and the exception is raised where the scheduler runs.
contract "RaiseIntoEnd" do
  heddle_only "tasks"

  # Raises ZeroDivisionError in these methods, when they are called or when they return, once.
  def raising_at(method, event, &)
    raised = false
    trace = TracePoint.new(event) do |point|
      if point.method_id == method && !raised && Thread.current == @thread
        raised = true
        raise ZeroDivisionError, "sent to the thread"
      end
    end
    @thread = Thread.current
    trace.enable(&)
  ensure
    @thread = nil
  end

  # (A signal's handler may do that.)
  def test_a_throw_goes_on
    reactor do
      task = Object.new.tap { |one| one.define_singleton_method(:ended) { throw(:ended, 7) } }

      assert_equal(7, catch(:ended) { Fiber.scheduler.__send__(:end_task, task) })
    end
  end

  %i[call return].each do |event|
    %i[ended task_ended finish].each do |method|
      define_method("test_at_the_#{event}_of_#{method}") do
        ended = []
        assert_raises(ZeroDivisionError) do
          raising_at(method, event) do
            Heddle.run(backend: backend) do
              Heddle.spawn { sleep(0.01) && (ended << 1) }
              task = Heddle.spawn { sleep(0.02) && (ended << 2) }
              task.wait && (ended << 3)
              sleep(0.01)
            end
          end
        end

        assert_includes(ended, 1)
      end
    end

    %i[task_ended fail_by cancel_tasks].each do |method|
      define_method("test_at_the_#{event}_of_#{method}_when_the_task_fails") do
        cancelled = false
        assert_raises(ZeroDivisionError, IOError) do
          raising_at(method, event) do
            Heddle.run(backend: backend) do
              Heddle.spawn do
                sleep
              ensure
                cancelled = true
              end
              Heddle.spawn { sleep(0.01) && raise(IOError) }
            end
          end
        end

        assert(cancelled)
      end
    end
  end

  def test_the_main_task
    assert_raises(ZeroDivisionError) do
      raising_at(:finish, :call) { Heddle.run(backend: backend) { 1 } }
    end
  end

  # At any moment, as it is in life.
  def test_thread_raise_while_tasks_end
    name = backend
    12.times do
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Heddle.run(backend: name) { loop { Heddle.spawn { 1 }.value && sleep(0) } }
      end
      sleep(rand(0.0005..0.002))
      thread.raise(ZeroDivisionError)

      assert_raises(ZeroDivisionError) { thread.join(60) and flunk("it ended") }
    end
  end
end
