# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.checkpoint: a task that never has to wait lets the others run, and can be ended.
contract "Checkpoint" do
  heddle_only "Heddle.checkpoint"

  def test_others_run
    order = []
    run do
      busy = Heddle.spawn do
        Heddle.checkpoint until order.include?(:other)
        order << :busy
      end
      Heddle.spawn { order << :other }
      busy.value
    end

    assert_equal(%i[other busy], order)
  end

  def test_a_cancel_ends_the_task
    task = run do
      task = Heddle.spawn(isolated: true) { loop { Heddle.checkpoint } }
      task.cancel.wait
      task
    end

    assert_predicate(task, :cancelled?)
  end

  def test_a_timeout_ends_the_block
    run { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { loop { Heddle.checkpoint } } } }
  end

  once def test_outside_of_a_task
    assert_nil(Heddle.checkpoint)
    assert_nil(Thread.new { Heddle.checkpoint }.value)
  end
end
