# frozen_string_literal: true

require_relative "../../test_helper"

# A cancel that comes when its task is on the way to its end: nothing happens, and nothing of it stays.
contract "LateCancel" do
  def test_a_late_cancel_leaves_nothing
    heddle_only("a task")
    reactor do
      before = exceptions
      200.times { cancel_too_late }

      assert_operator(exceptions, :<, before + 20)
    end
  end

  private

  def cancel_too_late
    queue = Thread::Queue.new
    task = Heddle.spawn { queue.pop }
    queue << :item
    task.cancel

    assert_equal(:item, task.value)
  end

  def exceptions
    GC.start
    ObjectSpace.each_object(Heddle::Cancelled).count
  end
end
