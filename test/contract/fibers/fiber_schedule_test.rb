# frozen_string_literal: true

require_relative "../../test_helper"

# Fiber.schedule and the fibers it makes.
contract "FiberSchedule" do
  heddle_only "fibers"

  def test_the_block_starts_at_once
    order = []
    reactor do
      Fiber.schedule { order << 1 }
      order << 2
    end

    assert_equal([1, 2], order)
  end

  def test_it_returns_when_the_block_first_waits
    order = []
    reactor do
      Fiber.schedule do
        order << 1
        sleep(0.01)
        order << 3
      end
      order << 2
    end

    assert_equal([1, 2, 3], order)
  end

  def test_it_returns_the_fiber
    reactor do
      inside = nil
      fiber = Fiber.schedule { (inside = Fiber.current) && sleep(0.01) }

      assert_same(inside, fiber)
      assert_predicate(fiber, :alive?)
      refute_predicate(fiber, :blocking?)
      sleep(0.05)

      refute_predicate(fiber, :alive?)
    end
  end

  def test_nested
    order = []
    reactor do
      Fiber.schedule do
        order << 1
        Fiber.schedule do
          order << 2
          Fiber.schedule { (order << 3) && sleep(0.01) && (order << 7) }
          order << 4
        end
        order << 5
      end
      order << 6
    end

    assert_equal([1, 2, 3, 4, 5, 6, 7], order)
  end

  # Hazard: in the reference implementation the parent is stranded.
  def test_a_parent_goes_on_after_its_child_has_ended
    reactor do
      ended = false
      parent = go do
        Fiber.schedule { sleep(0.01) }
        Fiber.schedule { nil }
        sleep(0.02)
        ended = true
      end
      parent.value

      assert(ended)
    end
  end

  def test_deep_nesting
    depth = 0
    reactor do
      nest = lambda do |level|
        depth = [depth, level].max
        Fiber.schedule { nest.call(level + 1) } if level < 200
        sleep(0)
      end
      nest.call(0)
    end

    assert_equal(200, depth)
  end

  def test_forms_of_schedule
    reactor do
      order = []
      Fiber.schedule { order << 2 }

      assert_equal([2], order)
      assert_raises(ArgumentError, LocalJumpError, RuntimeError) { Fiber.schedule }
    end
  end

  def test_many_short_fibers
    count = 0
    reactor { 10_000.times { Fiber.schedule { count += 1 } } }

    assert_equal(10_000, count)
  end

  def test_a_fiber_that_starts_the_next
    count = 0
    reactor do
      step = lambda do
        count += 1
        Fiber.schedule { sleep(0) && step.call } if count < 1000
      end
      step.call
    end

    assert_equal(1000, count)
  end

  # Hazard: a fiber spawned during shutdown was lost.
  def test_a_fiber_started_at_the_very_end_is_run
    %i[run set_scheduler].each do |entry|
      ended = []
      reactor(entry: entry) do
        Fiber.schedule do
          sleep(0.01)
          Fiber.schedule { sleep(0.01) && (ended << entry) }
        end
      end

      assert_equal([entry], ended)
    end
  end

  def test_blocking_fibers_block
    reactor do
      turns = 0
      go { 3.times { (turns += 1) && sleep(0.001) } }
      before = turns
      Fiber.new(blocking: true) { sleep(0.03) }.resume
      Fiber.blocking { sleep(0.03) }

      assert_equal(before, turns)
    end
  end

  def test_scheduler_and_current_scheduler
    reactor do
      assert_instance_of(Heddle::Scheduler, Fiber.scheduler)
      assert_same(Fiber.scheduler, Fiber.current_scheduler)
      assert_nil(Fiber.new(blocking: true) { Fiber.current_scheduler }.resume)
      assert_nil(Thread.new { Fiber.scheduler }.value)
    end

    assert_nil(Fiber.scheduler)
  end

  def test_a_scheduler_twice_on_one_thread
    name = backend
    Thread.new do
      2.times do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        done = false
        Fiber.schedule { sleep(0.01) && (done = true) }
        Fiber.set_scheduler(nil)

        assert(done)
      end
    end.join
  end

  def test_one_scheduler_replaces_another
    name = backend
    Thread.new do
      order = []
      2.times do |i|
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        Fiber.schedule { sleep(0.01) && (order << i) }
      end
      Fiber.set_scheduler(nil)

      assert_equal([0, 1], order)
    end.join
  end
end
