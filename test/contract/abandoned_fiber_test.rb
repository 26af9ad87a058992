# frozen_string_literal: true

require "timeout"
require_relative "../test_helper"

# A fiber that is no task (an Enumerator), left in the middle of something that the scheduler keeps a record of on that
# fiber's stack, and forgotten: the record must not outlive the stack.
contract "AbandonedFiber" do
  def test_inside_a_timeout
    heddle_only("all of them strike the thread")

    reactor do
      abandon(100) { |yielder| Timeout.timeout(1) { 2.times { yielder << 1 } } }

      assert_raises(Timeout::ExitException) { sleep(20) }
    end
  end

  def test_inside_a_timeout_that_does_not_fire
    heddle_only("the timeouts of other tests' fibers strike the thread")

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

  # A path that is asked for its name while the file is opened on the spot.
  def test_inside_an_open
    heddle_only("the scheduler keeps the record")

    reactor do
      abandon(500) do |yielder|
        asked = 0
        path = Object.new
        path.define_singleton_method(:to_path) do
          yielder << 1 if (asked += 1) > 1
          __FILE__
        end
        File.open(path) { nil }
      end
      100.times { File.open(__FILE__, &:read) }
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

  # Starts them, forgets them, and lets others have their stacks.
  def abandon(count, &block)
    count.times { Enumerator.new(&block).next }
    GC.start
    Array.new(count / 2) { Enumerator.new { |yielder| 2.times { |i| yielder << ("text" * i) } }.tap(&:next) }
    GC.start
  end
end
