# frozen_string_literal: true

# bin/test: takes 8 s, 0.1 of a core

require "timeout"

require_relative "../../test_helper"

# A task holds a lock, and waits for a task that wants it. That is a deadlock only if none of their waits has a limit.
contract "LimitedCircle" do
  heddle_only "Heddle::Deadlock"

  limit = 0.15
  in_an_enumerator = ->(other) { Enumerator.new { |to| to << other.wait }.next }

  def setup
    super
    needs_patch(:callers_fiber) # HEDDLE_SAFE also leaves out who holds a Mutex
  end

  # -- a limit ends the wait of the holder

  {
    "timeout" => ->(other) { Timeout.timeout(limit) { other.wait } },
    "heddle_timeout" => ->(other) { Heddle.timeout(limit) { other.wait } },
    "deadline" => ->(other) { Heddle.scope(deadline: limit) { other.wait } },
    "move_on_after" => ->(other) { Heddle.move_on_after(limit) { other.wait } },
    "limit_of_the_wait" => ->(other) { other.wait(limit) },
    "limit_of_a_select" => ->(other) { Heddle.select(other, timeout: limit) },
    "timeout_around_a_select" => ->(other) { Timeout.timeout(limit) { Heddle.select(other) } },
    "timeout_in_a_blocking_fiber" => ->(other) { Timeout.timeout(limit) { Fiber.blocking { other.wait } } },
    "timeout_around_an_enumerator" => ->(other) { Timeout.timeout(limit) { in_an_enumerator.call(other) } },
    "timeout_in_a_shield" => ->(other) { Heddle.shield { Timeout.timeout(limit) { other.wait } } }
  }.each do |name, wait|
    define_method("test_a_#{name}_is_a_limit") do
      beside_a_sleeper do
        holder, other = holder_and_other(&wait)

        assert_equal(:locked, other.value)
        refute_kind_of(Heddle::Deadlock, holder.wait.error)
      end
    end
  end

  # -- the limit goes, or has no effect

  {
    "a_task" => ->(_test, scope) { Heddle.spawn { sleep(0.3) && scope.deadline = nil } },
    "a_thread" => ->(test, scope) { test.in_a_thread { sleep(0.3) && scope.deadline = nil } }
  }.each do |name, take_away|
    define_method("test_a_deadline_that_#{name}_takes_away") do
      beside_a_sleeper do
        scope = nil
        holder, other = holder_and_other do |one|
          Heddle.scope(deadline: 60) { |here| (scope = here) && one.wait && :left }
        end
        take_away.call(self, scope)

        assert_nil(other.wait(0.15))
        assert_deadlock(other)
        assert_equal(:left, holder.value)
      end
    end
  end

  def test_a_timeout_that_a_shield_holds_back
    beside_a_sleeper do
      _, other = holder_and_other { |one| Timeout.timeout(60) { Heddle.shield { one.wait } } }

      assert_deadlock(other)
    end
  end

  def test_a_cancel_that_a_shield_holds_back
    beside_a_sleeper do
      seen = []
      wants = lambda do |held|
        Heddle.shield do
          held.synchronize { nil }
        rescue Heddle::Deadlock
          seen << :deadlock
        end
      end
      _, other = holder_and_other(wants, &:wait)
      other.cancel

      assert_same(other, other.wait(5), "it waits for ever")
      assert_equal([:deadlock], seen)
    end
  end

  # The block of the inner timeout is being ended when its time is over, so its exception is not raised.
  def test_a_timeout_whose_block_is_being_ended
    beside_a_sleeper do
      holder, other = holder_and_other do |one|
        Timeout.timeout(0.05) do
          Timeout.timeout(0.3) do
            sleep
          ensure
            one.wait
          end
        end
      end

      assert_deadlock(other)
      assert_kind_of(Timeout::Error, holder.wait.error)
    end
  end

  # -- the holder begins to wait after the look

  {
    "value" => ->(other) { other.value },
    "wait_in_a_blocking_fiber" => ->(other) { Fiber.blocking { other.wait } }
  }.each do |name, wait|
    define_method("test_a_#{name}_that_begins_later") do
      beside_a_sleeper do
        holder, other = holder_and_other { |one| sleep(0.3) && wait.call(one) }

        assert_deadlock(other)
        holder.wait
      end
    end
  end

  {
    "task" => -> { Heddle.spawn { sleep(limit) } },
    "channel" => -> { Heddle::Channel.new(1).tap { |one| Heddle.spawn { (one << 1) if sleep(limit) } } }
  }.each do |name, source|
    define_method("test_a_select_that_another_#{name}_ends") do
      beside_a_sleeper do
        holder, other = holder_and_other { |one| Heddle.select(one, source.call) && :left }

        assert_equal(%i[locked left], [other.value, holder.value])
      end
    end
  end

  def in_a_thread(&) = (@kept_threads ||= []) << Thread.new(&)

  def teardown
    @kept_threads&.each(&:join)
    super
  end

  private

  # The sleeper may wake the others, as far as Heddle knows. So there is no deadlock of the whole run.
  def beside_a_sleeper
    run do
      Heddle.spawn(background: true) { sleep }
      yield
    end
  end

  # @param wants [#call] is called with the lock, in the other task
  # @yieldparam other [Heddle::Task] the holder calls the block
  # @return [Array(Heddle::Task, Heddle::Task)] the holder, and the other task
  def holder_and_other(wants = ->(held) { held.synchronize { :locked } })
    held = Thread::Mutex.new
    other = nil
    holder = Heddle.spawn(name: "holder", isolated: true) do
      held.synchronize do
        other = Heddle.spawn(name: "other", isolated: true) { wants.call(held) }
        yield other
      end
    end
    [holder, other]
  end

  def assert_deadlock(task)
    assert_same(task, task.wait(20), "it waits for ever")
    assert_kind_of(Heddle::Deadlock, task.error)
  end
end
