# frozen_string_literal: true

require_relative "../../test_helper"

# Fiber storage is inherited; fiber-local variables are not shared.
contract "FiberStorage" do
  heddle_only "fibers"

  def test_storage_is_inherited
    reactor do
      Fiber[:request] = 7
      seen = go { sleep(0) && Fiber[:request] }

      assert_equal(7, seen.value)
      assert_equal(7, Fiber.schedule { Fiber[:request] }.then { Fiber[:request] })
    end
  end

  def test_a_child_does_not_change_its_parent
    reactor do
      Fiber[:request] = 7
      go { Fiber[:request] = 8 }.value

      assert_equal(7, Fiber[:request])
    end
  end

  def test_what_is_set_later_is_not_seen
    reactor do
      Fiber[:request] = 7
      job = go { sleep(0.01) && Fiber[:request] }
      Fiber[:request] = 8

      assert_equal(7, job.value)
    end
  end

  def test_grandchildren
    reactor do
      Fiber[:request] = 7

      assert_equal(7, go { go { sleep(0) && Fiber[:request] }.value }.value)
    end
  end

  # Ruby copies it for each fiber, so an empty one saves time.
  def test_heddle_keeps_nothing_there
    reactor do
      job = go { sleep(0) && Fiber.current.storage.to_h }

      assert_empty(Fiber.current.storage.to_h.keys.grep(/heddle/))
      assert_empty(job.value.keys.grep(/heddle/))
    end
  end

  def test_a_fiber_without_storage_belongs_to_its_task
    Heddle.run(backend: backend) do
      task = Heddle.spawn do
        Fiber.new(storage: nil) { [Heddle.current_task, Heddle.spawn { sleep(0) && 7 }.value] }.resume
      end

      assert_equal([task, 7], task.value)
    end
  end

  def test_what_a_plain_fiber_spawns_belongs_to_the_task_that_has_started_it
    found = Heddle.run(backend: backend) do
      task = Heddle.spawn do
        Heddle.scope do |scope|
          inner = nil
          Fiber.schedule { sleep(0) && (inner = [Heddle.current_task, Heddle.spawn { sleep(0.01) }]) }
          sleep(0) until inner
          [inner.first, scope.tasks.include?(inner.last)]
        end
      end
      task.value
    end

    assert_equal([nil, true], found)
  end

  def test_thread_keys_are_per_fiber
    reactor do
      Thread.current[:key] = 1
      inner = go { [Thread.current[:key], (Thread.current[:key] = 2)] }

      assert_equal([nil, 2], inner.value)
      assert_equal(1, Thread.current[:key])
    end
  end

  def test_thread_variables_are_shared
    reactor do
      Thread.current.thread_variable_set(:heddle_test, 1)

      assert_equal(1, go { Thread.current.thread_variable_get(:heddle_test) }.value)
    ensure
      Thread.current.thread_variable_set(:heddle_test, nil)
    end
  end

  def test_the_current_error_is_per_fiber
    reactor do
      raise ZeroDivisionError
    rescue ZeroDivisionError
      assert_nil(go { sleep(0) || $! }.value.then { nil })
      sleep(0.001)

      assert_instance_of(ZeroDivisionError, $!)
    end
  end

  def test_the_last_status_survives_a_switch
    reactor do
      system("exit 3")
      sleep(0)

      assert_equal(3, $?.exitstatus)
    end
  end
end
