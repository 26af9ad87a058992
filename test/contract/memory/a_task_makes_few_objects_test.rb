# frozen_string_literal: true

require_relative "../../test_helper"

# What starting and ending a task allocates.
contract "TaskObjects" do
  heddle_only "tasks"

  # For each of a thousand calls.
  def objects_of(&)
    1000.times(&)
    before = GC.stat(:total_allocated_objects)
    1000.times(&)
    (GC.stat(:total_allocated_objects) - before) / 1000.0
  end

  # Its block, what that closes over, the fiber, the task, and the array of its arguments.
  def test_a_task
    Heddle.run(backend: backend) do
      assert_in_delta(5, objects_of { Heddle.spawn { nil } }, 0.1)
    end
  end
end
