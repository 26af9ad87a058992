# frozen_string_literal: true

require_relative "../../test_helper"
require "logger"
require "stringio"

# Fiber storage is what tasks, background tasks, jobs of pools and offloaded blocks see of the code that starts them.
contract "ValuesThatTasksSee" do
  heddle_only("threads have no Fiber storage of their own that a block restores")

  def everywhere(&look)
    [Heddle.spawn(&look).value,
     Heddle.spawn(background: true, &look).value,
     Heddle.spawn(isolated: true, &look).value,
     Heddle.spawn { Heddle.spawn(&look).value }.value,
     Heddle.scope { |scope| scope.spawn(&look).value },
     *Heddle.map([1]) { look.call },
     Heddle::FiberPool.new(1).spawn(&look).value,
     Heddle.offload(&look),
     Heddle.blocking(&look),
     Heddle.spawn { Heddle.offload(&look) }.value,
     Thread.new { run { Heddle.spawn(&look).value } }.value]
  end

  def test_fiber_storage
    run do
      Fiber[:request] = 7

      assert_equal([7], everywhere { Fiber[:request] }.uniq)
    end
  end

  # A task changes its own alone.
  def test_a_change_stays_in_its_task
    run do
      Fiber[:request] = 7
      inside = everywhere { (Fiber[:request] += 1) && sleep(0.001) && Fiber[:request] }

      # Heddle.blocking runs its block in the task itself, so the tasks after it begin with 8.
      assert_equal(([8] * 9) + [9, 9], inside)
      assert_equal(8, Fiber[:request])
    end
  end

  # The tags of the guide, for a Logger of Ruby's own.
  def test_tags_of_a_logger
    lines = StringIO.new
    logger = Logger.new(lines, formatter: ->(_, _, _, message) { "#{Fiber[:tags].join(" ")} #{message}\n" })
    run do
      Fiber[:tags] = ["request 7"]
      everywhere { (Fiber[:tags] += ["task"]) && logger.info("done") } # not <<, which would change the spawner's
    end

    assert_equal(["request 7 task done\n"] * 9, lines.string.lines.first(9))
    assert_equal(11, lines.string.lines.size)
  end
end
