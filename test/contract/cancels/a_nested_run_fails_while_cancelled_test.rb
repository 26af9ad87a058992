# frozen_string_literal: true

require_relative "../../test_helper"

# A task is cancelled while a Heddle.run inside of it is failing: both are heard of.
contract "NestedCancel" do
  def test_a_failing_scope_does_not_swallow_the_cancel_of_its_task
    heddle_only("a task")
    reactor do
      60.times do |i|
        task = Heddle.spawn { loop { failing_scope } }
        (i % 8).times { sleep(0) }
        task.cancel

        assert(task.wait(60), "the task goes on after its cancel")
        assert_predicate(task, :cancelled?)
      end
    end
  end

  def test_a_raise_that_overtakes_the_cancel
    heddle_only("a task")
    log = []
    reactor do
      fiber = nil
      task = Heddle.spawn do
        fiber = Fiber.current
        sleep
      rescue ArgumentError
        log << :raised
        sleep
      ensure
        log << :ended
      end
      task.cancel
      fiber.raise(ArgumentError)
      task.wait(60)

      assert_predicate(task, :cancelled?)
    end

    assert_equal(%i[raised ended], log)
  end

  def test_nor_does_one_that_waits_for_its_tasks
    heddle_only("a task")
    reactor do
      failed = false
      task = Heddle.spawn do
        failing_scope(0.02) { failed = true }
        sleep
      end
      sleep(0.01) # the scope waits for the ensure block
      task.cancel

      assert(task.wait(60), "the task goes on after its cancel")
      assert_predicate(task, :cancelled?)
      assert(failed, "the failure of the scope was lost")
    end
  end

  def test_a_task_that_is_spawned_while_its_scope_fails_is_cancelled
    heddle_only("a task")
    ended = false
    failure = assert_raises(RuntimeError) do
      reactor do
        queue = Thread::Queue.new
        Heddle.spawn { queue.pop && Heddle.spawn { wait_and_clean(0) { ended = true } } }
        queue << 1
        raise "enough"
      end
    end

    assert_equal("enough", failure.message)
    assert(ended, "its ensure block has not run")
  end

  # Task#value raises what has ended that task: its owner is not cancelled by it.
  def test_the_cancel_of_another_task_ends_with_it
    heddle_only("a task")
    reactor do
      assert_raises(ZeroDivisionError) do
        Heddle.run do
          task = Heddle.spawn { sleep }
          task.cancel.wait
          Heddle.spawn { raise ZeroDivisionError }
          task.value
        end
      end
      sleep(0.001)

      assert_equal(:on, Heddle.run { sleep(0.001) && :on })
    end
  end

  # Exceptions that come while a scope waits for its tasks to end, however often, are raised afterwards.
  def test_strikes_while_a_scope_ends
    heddle_only("a task")
    reactor do
      [Class.new(StandardError), Class.new(Exception)].each do |raise_into| # rubocop:disable Lint/InheritException
        gate = Thread::Queue.new
        owner = nil
        run = go do
          owner = Fiber.current
          assert_raises(raise_into) do
            Heddle.run { Heddle.spawn { wait_and_clean(0) { gate.pop } } && raise(ArgumentError) }
          end
        end
        4.times { settle && owner.raise(raise_into) }

        refute_predicate(run, :finished?)
        gate.close
        run.value
      end
    end
  end

  # The block of the failing Heddle.run waits in a fiber that it has resumed, and has been resumed itself.
  def test_a_scope_in_the_middle_of_a_chain_of_fibers
    heddle_only("a task")
    ended = []
    reactor do
      outer = Enumerator.new do |yielder|
        assert_raises(ZeroDivisionError) { Heddle.run { fail_soon && wait_in_an_enumerator { ended << :inner } } }
        yielder << sleep(0.001)
      end
      outer.next
      sleep(0.001)
      ended << :outer
    end

    assert_equal(%i[inner outer], ended)
  end

  private

  def fail_soon
    Heddle.spawn { sleep(0.01) && raise(ZeroDivisionError) }
  end

  def wait_in_an_enumerator
    waiting = Enumerator.new do |yielder|
      yielder << sleep(10_000)
    ensure
      yield
    end
    waiting.next
  end

  def failing_scope(cleaning = 0)
    Heddle.run do
      Heddle.spawn { wait_and_clean(cleaning) }
      Heddle.spawn { raise ArgumentError }
      sleep
    end
  rescue ArgumentError
    yield if block_given?
    sleep(0)
  end

  def wait_and_clean(cleaning)
    sleep
  ensure
    sleep(cleaning)
    yield if block_given?
  end
end
