# frozen_string_literal: true

require_relative "../../test_helper"
require "timeout"

# The deadline of a scope may be read and set while the scope runs; Heddle.remaining is the time that the caller has.
contract "Deadlines" do
  heddle_only "scopes"

  def log = @log ||= []

  def run(*, &block) = block ? Heddle.run(backend: backend, grace: 20, &block) : super(*)

  def sleep_and_note(name)
    sleep(20)
    log << :not_cancelled
  ensure
    log << name
  end

  def test_a_deadline_that_is_set_later
    run do
      error = assert_raises(Heddle::TimeoutError) do
        Heddle.scope do |scope|
          assert_nil(scope.deadline)
          scope.spawn { sleep_and_note(:task) }
          scope.deadline = 0.01
          sleep_and_note(:block)
        end
      end

      assert_equal("not done after 0.01 s", error.message)
    end

    assert_equal(%i[block task], log.sort)
  end

  def test_more_time_and_less
    run do
      value = Heddle.move_on_after(0.05) do |scope|
        scope.deadline += 20

        assert_in_delta(20, scope.deadline, 10)
        sleep(0.1)
        scope.deadline = nil

        assert_nil(scope.deadline)
        :value
      end

      assert_equal(:value, value)
      assert_nil(Heddle.move_on_after(20) { |scope| (scope.deadline = 0) && sleep })
      assert_nil(Heddle.move_on_after(20) { |scope| (scope.deadline = -1) && Heddle.spawn { sleep } })
    end
  end

  def test_a_deadline_that_others_set
    run do
      assert_nil(Heddle.move_on_after(20) { |scope| scope.spawn { (scope.deadline = 0.001) && sleep } && sleep })
      assert_nil(Heddle.move_on_after(20) { |scope| Thread.new { sleep(0.01) && scope.deadline = 0.001 } && sleep })
      assert_equal(:value, Heddle.move_on_after(0.1) do |scope|
        Thread.new { scope.deadline = nil }
        sleep(0.3) && :value
      end)
    end
  end

  def test_a_block_that_computes_beyond_a_deadline_that_is_set_later
    assert_nil(run { Heddle.move_on_after(nil) { |scope| (scope.deadline = 0.05) && loop { 1 + 1 } } })
  end

  def test_a_deadline_that_is_over_cannot_be_moved
    run do
      scope = nil
      assert_raises(Heddle::TimeoutError) do
        Heddle.scope(deadline: 0.001) do |one|
          scope = one
          sleep
        ensure
          one.deadline = 20

          assert_in_delta(0.0, one.deadline)
        end
      end
      assert_predicate(scope, :cancelled?)
    end
  end

  # -- the time that is left --------------------------------------------------------------------------------------

  def assert_remaining(expected, value = Heddle.remaining)
    expected ? assert_in_delta(expected, value, 15) : assert_nil(value)
  end

  def test_the_time_that_is_left
    run do
      assert_remaining(nil)
      Heddle.scope(deadline: 100) do |scope|
        assert_remaining(100)
        Heddle.timeout(200) { assert_remaining(100) }
        Timeout.timeout(50) { assert_remaining(50) }
        Heddle.move_on_after(50) { assert_remaining(50) }
        scope.deadline = 400

        Heddle.timeout(200) { assert_remaining(200) }
        assert_remaining(400)
        assert_remaining(400, Enumerator.new { |to| to << Heddle.remaining }.next)
        Heddle.blocking { assert_remaining(400) }
      end

      assert_remaining(nil)
    end
  end

  def test_the_time_that_is_left_to_a_task
    run do
      Heddle.scope(deadline: 100) do |scope|
        Heddle.timeout(50) do
          scope.spawn { assert_remaining(100) } # it does not belong to the timeout
          Heddle.map([1, 2]) { assert_remaining(50) }
          Heddle.scope(deadline: 300) do |inner|
            inner.spawn { assert_remaining(50) }
            Heddle.spawn { Heddle.timeout(20) { assert_remaining(20) } }
          end
        end
        scope.spawn { sleep(0.001) && assert_remaining(100) }
      end

      Heddle.spawn { assert_remaining(nil) }
    end
  end

  def test_the_time_that_is_left_to_a_thread
    assert_remaining(nil)
    Heddle.timeout(100) do
      assert_remaining(100)
      Heddle.timeout(200) { assert_remaining(100) }
      Heddle.timeout(50) { assert_remaining(50) }
      run { Heddle.scope(deadline: 300) { Heddle.spawn { assert_remaining(100) } } }

      assert_nil(Thread.new { Heddle.remaining }.value)
    end
    assert_remaining(nil)
  end

  def test_no_time_is_left
    run do
      Heddle.move_on_after(0.001) { Heddle.shield { sleep(0.01) && (log << Heddle.remaining) } }
    end

    assert_equal([0.0], log)
  end

  def test_what_is_asked_wrongly
    ["1", Float::NAN, 1i].each do |wrong|
      error = assert_raises(ArgumentError) { Heddle.scope { |scope| scope.deadline = wrong } }

      assert_match(/\Adeadline: /, error.message)
    end
  end
end
