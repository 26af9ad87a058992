# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.run: a scope that waits for its tasks and returns its block's value.
contract "Run" do
  heddle_only "Heddle.run"

  def test_returns_the_value_of_the_block
    assert_equal(:value, Heddle.run(backend: backend) { :value })
    assert_nil(Heddle.run(backend: backend) { nil })
    assert_equal(:later, Heddle.run(backend: backend) { sleep(0.01) && :later })
  end

  def test_needs_a_block
    assert_raises(ArgumentError) { Heddle.run(backend: backend) }
  end

  def test_waits_for_its_tasks
    ended = []
    Heddle.run(backend: backend) do
      3.times { |i| Heddle.spawn { (sleep(0.01) until ended.size == 2 - i) || (ended << i) } }
    end

    assert_equal([2, 1, 0], ended)
  end

  def test_waits_for_the_tasks_of_tasks
    ended = 0
    Heddle.run(backend: backend) do
      Heddle.spawn do
        sleep(0.005)
        Heddle.spawn { sleep(0.01) && Heddle.spawn { sleep(0.005) && (ended += 1) } && (ended += 1) }
      end
    end

    assert_equal(2, ended)
  end

  def test_waits_for_plain_fibers
    ended = false
    Heddle.run(backend: backend) { Fiber.schedule { sleep(0.02) && (ended = true) } }

    assert(ended)
  end

  def test_raises_what_the_block_raises
    error = assert_raises(ZeroDivisionError) do
      Heddle.run(backend: backend) { sleep(0.001) && raise(ZeroDivisionError, "mine") }
    end

    assert_equal("mine", error.message)
    assert_includes(error.backtrace.first, __FILE__)
    assert_nil(Fiber.scheduler)
  end

  def test_a_failing_block_cancels_the_tasks
    ended = nil
    started = now
    assert_raises(ZeroDivisionError) do
      Heddle.run(backend: backend) do
        Heddle.spawn do
          sleep(200)
        rescue Exception => e
          ended = e.class
          raise
        end
        raise ZeroDivisionError
      end
    end

    assert_equal(Heddle::Cancelled, ended)
    assert_operator(now - started, :<, 100)
  end

  def test_the_backend
    { "uring" => "uring", "epoll" => "epoll" }.each do |name, shown|
      next unless name == backend

      assert_equal(shown, Heddle.run(backend: name) { Fiber.scheduler.backend })
      assert_equal(shown, Heddle.run(backend: name.to_sym) { Fiber.scheduler.backend })
    end

    assert_raises(ArgumentError) { Heddle.run(backend: "none such") { nil } }
  end

  def test_the_backend_of_a_run_within_a_run
    [backend, backend.to_sym, nil, ""].each { |same| assert_equal(1, run { Heddle.run(backend: same) { 1 } }) }
    error = assert_raises(ArgumentError) { run { Heddle.run(backend: :another) { flunk } } }

    assert_equal("backend: must be #{backend}, on which this thread runs already, or nil, not :another", error.message)
  end

  def test_nested_runs
    order = []
    value = Heddle.run(backend: backend) do
      gate = Thread::Queue.new
      Heddle.spawn { gate.pop && (order << :outer_task) }
      inner = Heddle.run do
        Heddle.spawn { sleep(0.01) && (order << :inner_task) }
        :inner
      end
      order << :after_inner
      gate << true
      [inner, :outer]
    end

    assert_equal(%i[inner outer], value)
    assert_equal(%i[inner_task after_inner outer_task], order)
  end

  def test_a_failure_in_a_nested_run_stays_there
    Heddle.run(backend: backend) do
      outer = Heddle.spawn { sleep(0.03) && :fine }
      assert_raises(ZeroDivisionError) do
        Heddle.run do
          Heddle.spawn { raise ZeroDivisionError }
          sleep(20)
        end
      end

      assert_equal(:fine, outer.value)
    end
  end

  def test_nested_in_a_task
    Heddle.run(backend: backend) do
      task = Heddle.spawn { Heddle.run { Heddle.spawn { sleep(0.01) && 1 }.value + 1 } }

      assert_equal(2, task.value)
    end
  end

  def test_one_after_the_other
    Heddle.run(backend: backend) { sleep(0.001) } # its thread keeps the backend for the next one
    before = descriptor_count

    20.times { |i| assert_equal(i, Heddle.run(backend: backend) { sleep(0.001) && i }) }

    assert_equal(before, descriptor_count)
  end

  def test_in_several_threads_at_once
    name = backend
    threads = Array.new(4) { |i| Thread.new { Heddle.run(backend: name) { 10.times { sleep(0.002) } && i } } }

    assert_equal([0, 1, 2, 3], threads.map(&:value))
  end

  def return_from_run
    Heddle.run(backend: backend) do
      Heddle.spawn { sleep(20) }
      return :returned
    end
    :not_here
  end

  def test_break_return_and_throw_leave_it
    needs_patch(:callers_fiber)
    leave = lambda do
      Heddle.run(backend: backend) { Heddle.spawn { sleep(20) } && throw(:out, :thrown) }
    end

    assert_equal(:thrown, catch(:out) { leave.call })
    assert_equal(:broken, Heddle.run(backend: backend) { break :broken if Heddle.spawn { sleep(20) } })
    assert_equal(:returned, return_from_run)
  end

  def test_under_a_scheduler_of_another_kind
    other = Class.new do
      def block(*) = nil
      def unblock(*) = nil
      def kernel_sleep(*) = nil
      def io_wait(*) = nil
      def fiber_interrupt(*) = nil
      def close = nil
    end
    name = backend
    error = Thread.new do
      Fiber.set_scheduler(other.new)
      Heddle.run(backend: name) { nil }
    rescue Heddle::Error => e
      e
    ensure
      Fiber.set_scheduler(nil)
    end.value

    assert_kind_of(Heddle::Error, error)
  end
end
