# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.spawn(background: true): the scope does not wait for it, and cancels it at its end.
contract "BackgroundTasks" do
  heddle_only "Heddle.spawn"

  def test_it_does_not_hold_up_its_scope
    events = []
    value = run do
      Heddle.spawn(background: true) do
        sleep
      ensure
        sleep(0.002)
        events << :background
      end
      Heddle.spawn { sleep(0.005) && (events << :task) }
      :value
    end

    assert_equal(:value, value)
    assert_equal(%i[task background], events)
  end

  def test_of_a_nested_run
    run do
      task = nil
      Heddle.run { task = Heddle.spawn(background: true) { sleep } }

      assert_predicate(task, :cancelled?)
      assert_equal(1, Heddle.spawn { 1 }.value)
    end
  end

  def test_it_may_end_first
    run do
      task = Heddle.spawn(background: true) { sleep(0.001) && :value }

      assert_equal(:value, task.value)
      Heddle.spawn { sleep(0.001) }
    end
  end

  def test_it_is_waited_for_where_somebody_wants_its_value
    assert_equal(:value, run { Heddle.spawn(background: true) { sleep(0.005) && :value }.value })
  end

  def test_its_failure_ends_the_scope
    assert_raises(IOError) do
      run do
        Heddle.spawn(background: true) { sleep(0.002) && raise(IOError) }
        sleep
      end
    end
  end

  def test_its_failure_at_the_end_is_raised
    error = assert_raises(IOError) do
      run do
        Heddle.spawn(background: true) do
          sleep
        ensure
          raise IOError, "while ending"
        end
        :value
      end
    end

    assert_equal("while ending", error.message)
  end

  def test_what_it_spawns_holds_up_the_scope
    ended = false
    run do
      Heddle.spawn(background: true) { Heddle.spawn { sleep(0.005) && (ended = true) } && sleep }
      sleep(0)
    end

    assert(ended)
  end

  def test_a_failing_scope_cancels_it
    ended = false
    assert_raises(IOError) do
      run do
        Heddle.spawn(background: true) do
          sleep
        ensure
          sleep(0.001)
          ended = true
        end
        raise IOError
      end
    end

    assert(ended)
  end
end
