# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.scope: it returns when all its tasks have ended, whatever ends it.
contract "Scope" do
  heddle_only "Heddle.scope"

  def run(*, **options, &block)
    block ? Heddle.run(backend: backend, **options, &block) : super(*)
  end

  def test_it_gives_itself_and_returns_the_value_of_its_block
    run do
      value = Heddle.scope do |scope|
        assert_instance_of(Heddle::Scope, scope)
        scope.spawn(20) { |number| sleep(0.001) && (number + 1) }.value * 2
      end

      assert_equal(42, value)
    end
  end

  def test_it_waits_for_its_tasks_and_only_for_them
    run do
      events = []
      outer = Heddle.spawn { sleep }
      Heddle.scope do |scope|
        scope.spawn { sleep(0.01) && (events << :own) }
        Heddle.spawn { sleep(0.005) && Heddle.spawn { sleep(0.01) && (events << :of_task) } }
      end

      assert_equal(%i[own of_task].sort, events.sort)
      assert_predicate(outer, :alive?)
      outer.cancel
    end
  end

  def test_it_needs_no_run
    assert_equal([1, 2], Heddle.scope { |scope| [1, 2].map { |i| scope.spawn { sleep(0.001) && i } }.map(&:value) })
    assert_nil(Fiber.scheduler)
    assert_equal(:in_a_thread, Thread.new { Heddle.scope { |scope| scope.spawn { :in_a_thread }.value } }.value)
  end

  def test_spawn_after_its_end
    run do
      ended = Heddle.scope { |scope| scope }
      error = assert_raises(Heddle::Error) { ended.spawn { flunk } }

      assert_match(/the scope has ended/, error.message)
    end
  end

  def test_inspect
    scope = Heddle.scope do |one|
      one.spawn { sleep(0) }

      assert_equal("#<Heddle::Scope 1 tasks>", one.inspect)
      one
    end

    assert_equal("#<Heddle::Scope ended>", scope.inspect)
  end

  def test_bad_arguments
    assert_raises(ArgumentError) { Heddle.scope }
    nan = Float::NAN
    [[:deadline, "1"], [:deadline, nan], [:grace, "long"], [:grace, nan], [:grace, -1]].each do |name, value|
      error = assert_raises(ArgumentError) { Heddle.scope(name => value) { flunk } }

      assert_match(/\A#{name}: .*#{Regexp.escape(value.inspect)}\z/, error.message)
    end
  end

  def test_a_deadline_ends_the_block_and_its_tasks
    run do
      ended = []
      error = assert_raises(Heddle::TimeoutError) do
        Heddle.scope(deadline: 0.02) do |scope|
          scope.spawn { sleep_and_note(ended, :task) }
          sleep_and_note(ended, :block)
        end
      end

      assert_kind_of(Timeout::Error, error)
      assert_equal(%i[block task], ended.sort)
    end
  end

  def test_a_deadline_while_the_tasks_are_waited_for
    run do
      ended = []
      assert_raises(Heddle::TimeoutError) do
        Heddle.scope(deadline: 0.02) { |scope| scope.spawn { sleep_and_note(ended, :task) } }
      end

      assert_equal([:task], ended)
    end
  end

  def test_the_earlier_of_two_deadlines_holds
    run do
      order = []
      assert_raises(Heddle::TimeoutError) do
        Heddle.scope(deadline: 0.02) do
          Heddle.scope(deadline: 20) { sleep_and_note(order, :inner) }
        ensure
          order << :outer
        end
      end
      assert_equal(%i[inner outer], order)

      Heddle.scope(deadline: 20) do
        assert_raises(Heddle::TimeoutError) { Heddle.scope(deadline: 0.01) { sleep } }
      end
    end
  end

  def test_a_deadline_that_is_over
    run { assert_raises(Heddle::TimeoutError) { Heddle.scope(deadline: 0) { flunk } } }
  end

  def test_a_failure_stays_in_its_scope
    run do
      outer = Heddle.spawn { sleep(0.03) && :fine }
      assert_raises(ZeroDivisionError) do
        Heddle.scope do |scope|
          scope.spawn { sleep(0.001) && raise(ZeroDivisionError) }
          sleep
        end
      end

      assert_equal(:fine, outer.value)
    end
  end

  def test_a_cancelled_task_is_no_failure
    run do
      value = Heddle.scope do |scope|
        task = scope.spawn { sleep }
        task.cancel(:enough)
        error = assert_raises(Heddle::Cancelled) { task.value }

        assert_equal([:enough, "the task was cancelled: enough", :cancelled],
                     [error.reason, error.message, task.status])
        :value
      end

      assert_equal(:value, value)
    end
  end

  def test_siblings_know_the_reason
    reasons = []
    run do
      Heddle.spawn do
        sleep
      rescue Heddle::Cancelled => e
        reasons << e.reason
        raise
      end
      Heddle.spawn { raise IOError, "the cause" }
    end
  rescue IOError => e
    assert_same(e, reasons.first)
  end

  def test_status
    run do
      waiting = Heddle.spawn { sleep }
      failed = Heddle.spawn(isolated: true) { raise IOError }

      assert_equal(%i[running finished failed], [waiting, Heddle.spawn { 1 }, failed].map(&:status))
      assert_kind_of(IOError, failed.error)
      waiting.cancel
    end
  end

  # -- what cleans up --------------------------------------------------------------------------------------------

  def test_an_ensure_clause_may_start_tasks_and_wait_for_them
    cleaned = []
    assert_raises(IOError) do
      run do
        Heddle.spawn do
          sleep
        ensure
          Heddle.spawn { sleep(0.02) && (cleaned << :by_task) }.value
          cleaned << :waited
        end
        Heddle.spawn do
          sleep(0.005) && raise(IOError)
        ensure
          Heddle.spawn { sleep(0.02) && (cleaned << :of_the_failing_one) }
        end
        sleep
      ensure
        Heddle.spawn { sleep(0.02) && (cleaned << :of_the_block) }
      end
    end

    assert_equal(%i[by_task of_the_block of_the_failing_one waited], cleaned.sort)
  end

  def test_the_ensure_clause_of_a_failing_block_may_start_tasks
    cleaned = []
    assert_raises(IOError) do
      run do
        raise IOError
      ensure
        Heddle.spawn { sleep(0.02) && (cleaned << true) }
      end
    end

    assert_equal([true], cleaned)
  end

  def test_when_the_grace_period_is_over
    raised = []
    assert_raises(IOError) do
      run(grace: 0.05) do
        Heddle.spawn do
          sleep
        ensure
          begin
            Heddle.spawn { sleep_and_note(raised, :clean_up) }
            sleep
          rescue Heddle::Cancelled => e
            raised << e.message
          end
        end
        raise IOError
      end
    end

    assert_equal([:clean_up, "the grace period of 0.05 s is over"], raised.sort_by(&:to_s))
  end

  def test_the_grace_period_is_inherited
    raised = []

    run(grace: 0.02) do
      assert_raises(Heddle::TimeoutError) do
        Heddle.scope(deadline: 0.01) do |scope|
          scope.spawn do
            sleep
          ensure
            sleep_and_note(raised, true)
          end
        end
      end
    end

    assert_equal([true], raised)
  end

  # -- plain fibers ----------------------------------------------------------------------------------------------

  def test_spawn_in_a_plain_fiber_when_the_block_has_returned
    done = []
    run do
      Fiber.schedule do
        sleep(0.02)
        Heddle.spawn { sleep(0.01) && (done << :first) }.value
        Heddle.spawn(background: true) { sleep }
        Heddle.spawn { Heddle.spawn { sleep(0.01) && (done << :second) } }
      end
    end

    assert_equal(%i[first second], done)
  end

  def test_a_failure_of_such_a_task_is_raised
    error = assert_raises(IOError) do
      run { Fiber.schedule { sleep(0.01) && Heddle.spawn { sleep(0.001) && raise(IOError, "late") } } }
    end

    assert_equal("late", error.message)
  end

  def test_a_plain_fiber_of_a_scope_that_has_ended_spawns_in_the_next_one
    run do
      task = nil
      Heddle.scope { Fiber.schedule { sleep(0.01) && (task = Heddle.spawn { :outer }) } }
      sleep(0.005) until task

      assert_equal(:outer, task.value)
    end
  end

  private

  def sleep_and_note(list, entry)
    sleep
  ensure
    list << entry
  end
end
