# frozen_string_literal: true

require "timeout"
require_relative "../../test_helper"

# A path that goes back to whoever asks for the next element when it is asked for its name, by File.open.
class AskingPath
  def initialize(yielder)
    @yielder = yielder
  end

  def to_path
    @yielder << 1
    __FILE__
  end
end

# A fiber that is no task (an Enumerator), left in the middle of something that the scheduler keeps a record of on that
# fiber's stack, and forgotten: the record must not outlive the stack.
contract "AbandonedFiber" do
  def test_inside_a_timeout
    heddle_only("all of them are raised in the thread")

    reactor do
      abandon(100) { |yielder| Timeout.timeout(1) { 2.times { yielder << 1 } } }

      assert_raises(Timeout::ExitException) { sleep(20) }
    end
  end

  def test_inside_a_timeout_that_does_not_fire
    heddle_only("the timeouts of other tests' fibers are raised in the thread")

    reactor do
      abandon(500) { |yielder| Timeout.timeout(600) { 2.times { yielder << 1 } } }
      100.times { Timeout.timeout(5) { sleep(0) } }
    end
  end

  def test_inside_a_mask
    heddle_only("the masks stay with the thread")

    reactor do
      abandon(500) { |yielder| Thread.handle_interrupt(Timeout::Error => :never) { 2.times { yielder << 1 } } }
      assert_raises(Timeout::Error) { Timeout.timeout(0.02, Timeout::Error) { sleep } }
    end
  end

  # A path that is asked for its name.
  def test_inside_an_open
    heddle_only("the scheduler keeps the record")

    reactor do
      abandon(500) { |yielder| File.open(AskingPath.new(yielder)) { nil } }
      100.times { File.open(__FILE__, &:read) }
    end
  end

  # 500 of them are not kept: not by a mask (what a connection pool does), not by the timeouts of a task that has ended.
  {
    "inside_a_mask" => ->(yielder) { Thread.handle_interrupt(Timeout::Error => :never) { 2.times { yielder << 1 } } },
    "inside_two_masks" => lambda do |yielder|
      Thread.handle_interrupt(Timeout::Error => :never) do
        Thread.handle_interrupt(Timeout::Error => :immediate) { 2.times { yielder << 1 } }
      end
    end,
    "inside_an_open" => ->(yielder) { File.open(AskingPath.new(yielder)) { nil } },
    "inside_a_timeout_that_is_over" => ->(yielder) { Timeout.timeout(0.02) { 2.times { yielder << 1 } } },
    "inside_a_timeout_of_its_task" => ->(yielder) { Timeout.timeout(600) { 2.times { yielder << 1 } } }
  }.each do |name, block|
    define_method("test_it_is_collected_#{name}") do
      heddle_only("the timeouts are raised in the thread")

      reactor do
        # (One word that is left on a stack keeps a fiber, and that the one before it, and so on: not at every depth.)
        kept = (0..9).lazy.map do |depth|
          before = living_fibers
          at_depth(depth * 3) { go { 500.times { Enumerator.new(&block).next } }.value }
          sleep(0.03)
          living_fibers - before
        end

        assert(kept.any? { |count| count < 250 }, "they are all kept")
        assert_equal(0, Fiber.scheduler.__send__(:counts)[:timers])
      end
    end
  end

  # The fiber whose mask the scheduler itself knew is not kept, either. One may be kept by a word that is left on a
  # stack.
  def test_the_only_one_is_collected
    heddle_only("the masks stay with the thread")

    left = Array.new(5) do
      object = ObjectSpace::WeakMap.new
      reactor do
        go { abandon_with(object) }.value
        go { Thread.handle_interrupt(IOError => :never) { sleep(0.001) } }.value
        3.times { go { GC.start }.value }
        object.size
      end
    end

    assert_includes(left, 0)
  end

  # A mask that was abandoned holds nothing back from a fiber that is born at the same address, nor from its task.
  def test_masks_end_with_their_fibers
    heddle_only("the masks stay with the thread")

    reactor do
      abandon(200) { |yielder| Thread.handle_interrupt(Timeout::Error => :never) { 2.times { yielder << 1 } } }
      200.times do
        other = Enumerator.new { |yielder| yielder << sleep(20) }

        assert_raises(Timeout::Error) { Timeout.timeout(0.0001, Timeout::Error) { other.next } }
      end
    end
  end

  # Another task goes on with it: its masks hold there, too.
  def test_a_mask_goes_with_its_fiber
    heddle_only("the masks stay with the thread")

    reactor do
      passed = []
      numbers = Enumerator.new do |yielder|
        Thread.handle_interrupt(Timeout::Error => :never) { 3.times { |i| (yielder << i) && (passed << sleep(0.05)) } }
      end
      go { numbers.next }.value

      assert_raises(Timeout::Error) { Timeout.timeout(0.01, Timeout::Error) { sleep if numbers.next } }
      assert_equal(1, passed.size)
    end
  end

  # The fiber outlives the scheduler.
  def test_it_goes_on_after_the_run
    numbers = nil
    reactor do
      numbers = Enumerator.new do |yielder|
        Timeout.timeout(600) { Thread.handle_interrupt(Timeout::Error => :never) { 3.times { |i| yielder << i } } }
      end

      assert_equal(0, numbers.next)
    end
    reactor { GC.start }

    assert_equal([1, 2], [numbers.next, numbers.next])
    assert_raises(StopIteration) { numbers.next }
  end

  private

  def abandon_with(weak_map)
    Enumerator.new do |yielder|
      weak_map[object = Object.new] = true
      Thread.handle_interrupt(IOError => :never) { yielder << object }
    end.next
    nil
  end

  def living_fibers
    2.times { GC.start }
    ObjectSpace.each_object(Fiber).count
  end

  def at_depth(frames, &block)
    frames.zero? ? block.call : at_depth(frames - 1, &block)
  end

  # Starts them, forgets them, and lets others have their stacks.
  def abandon(count, &block)
    count.times { Enumerator.new(&block).next }
    GC.start
    Array.new(count / 2) { Enumerator.new { |yielder| 2.times { |i| yielder << ("text" * i) } }.tap(&:next) }
    GC.start
  end
end
