# frozen_string_literal: true

# bin/test: takes 2 s, 0.5 of a core

require_relative "../test_helper"

# Kernel#sleep does what Ruby's own does, with less effort.
contract "DirectSleep" do
  # (Which number depends on the time of day.)
  def outcome
    yield.class
  rescue StandardError => e
    [e.class, e.message]
  end

  def test_what_it_returns_and_raises
    sleeps = [-> { sleep(0) }, -> { Kernel.sleep(0) }, -> { sleep(0.001) }, -> { sleep(1r / 1000) }, -> { sleep(-1) },
              -> { sleep("1") }, -> { sleep(:x) }, -> { sleep(0, 1) }, -> { sleep(Float::NAN) },
              -> { Object.new.sleep(0) }]
    own = sleeps.map { |one| outcome(&one) }
    in_task = reactor { sleeps.map { |one| outcome(&one) } }

    assert_equal(own.map { |one| [*one].first }, in_task.map { |one| [*one].first })
  end

  def test_whole_seconds_are_counted
    assert_includes([1, 2], reactor { sleep(1) })
  end

  # A scheduler whose hook is another one is asked.
  def test_a_subclass_with_a_hook_of_its_own
    heddle_only("a scheduler of Heddle's")
    asked = []
    scheduler = Class.new(Heddle::Scheduler) do
      define_method(:kernel_sleep) do |*arguments|
        asked << arguments
        super(*arguments)
      end
    end
    Thread.new do
      Fiber.set_scheduler(scheduler.new)
      Fiber.schedule { sleep(0) && sleep(0.001) }
    end.join

    assert_equal([[0], [0.001]], asked)
  end

  def test_where_no_scheduler_runs
    assert_equal(0, Thread.new { sleep(0) }.value)
    assert_raises(ArgumentError) { sleep(-1) }
  end
end
