# frozen_string_literal: true

require_relative "../../test_helper"

# A scope is left early without an error: by Scope#cancel, or when the time of Heddle.move_on_after is over. Both end
# the block and the tasks as a deadline does.
contract "LeavingAScopeEarly" do
  heddle_only "scopes"

  def log = @log ||= []

  def run(*, &block) = block ? Heddle.run(backend: backend, grace: 20, &block) : super(*)

  def sleep_and_note(name)
    sleep(20)
    log << :not_cancelled
  ensure
    sleep(0.001)
    log << name
  end

  # Opens a scope with a task and yields it to the block; the block and the task must end.
  def assert_cut_short(*ended, &block)
    scope = nil
    value = run do
      Heddle.scope do |one|
        scope = one
        one.spawn { sleep_and_note(:task) }
        block.call(one)
        sleep_and_note(:block)
        :value
      end
    end

    assert_nil(value)
    assert_predicate(scope, :cancelled?)
    refute_predicate(scope, :open?)
    assert_equal(ended.sort, log.sort)
  end

  def test_cancelled_by_its_block
    assert_cut_short(:task, &:cancel)
  end

  def test_cancelled_by_a_task_of_its_own
    assert_cut_short(:task, :block) do |scope|
      scope.spawn do
        sleep(0.001)
        scope.cancel
        log << :not_raised_at_once
      end
    end
  end

  def test_cancelled_by_a_task_of_an_inner_scope
    assert_cut_short(:task, :inner) do |scope|
      Heddle.scope do |inner|
        inner.spawn { sleep_and_note(:inner) }
        inner.spawn { sleep(0.001) && scope.cancel }
        sleep
      end
    end
  end

  def test_cancelled_by_a_task_outside
    outside = nil
    run do
      Heddle.scope do |outer|
        assert_nil(Heddle.scope do |scope|
          scope.spawn { sleep_and_note(:task) }
          outside = outer.spawn { sleep(0.001) && scope.cancel && :went_on }
          sleep_and_note(:block)
        end)
      end
    end

    assert_equal(:went_on, outside.value)
    assert_equal(%i[block task], log.sort)
  end

  def test_cancelled_by_a_thread
    assert_cut_short(:task, :block) { |scope| Thread.new { sleep(0.001) && scope.cancel } }
  end

  def test_cancelled_by_a_thread_while_the_block_computes
    assert_cut_short(:task, :block) { |scope| Thread.new { scope.cancel }.join }
  end

  def test_cancelled_when_only_its_tasks_are_left
    scope = nil
    value = run do
      Heddle.scope do |one|
        scope = one
        one.spawn { sleep_and_note(:task) }
        one.spawn { sleep(0.001) && one.cancel }
        :value
      end
    end

    assert_nil(value)
    assert_predicate(scope, :cancelled?)
    assert_equal([:task], log)
  end

  def test_without_a_run_around_it
    scope = nil

    assert_nil(Heddle.scope { |one| (scope = one).cancel && flunk })
    assert_predicate(scope, :cancelled?)
  end

  def test_tasks_and_block_hear_the_reason
    reasons = []
    note = lambda do
      sleep
    rescue Heddle::Cancelled => e
      reasons << e.reason
      raise
    end
    [->(scope) { scope.cancel(:found) }, ->(scope) { Thread.new { scope.cancel(:found) }.join }].each do |cancel|
      run do
        Heddle.scope do |scope|
          scope.spawn(&note)
          Heddle.spawn { cancel.call(scope) }
          note.call
        end
      end
    end

    assert_equal([:found] * 4, reasons)
  end

  def test_inner_scopes_and_what_surrounds_it
    run do
      outer_value = Heddle.scope do |outer|
        assert_nil(Heddle.scope { |scope| Heddle.scope { scope.cancel && flunk } && flunk })
        refute_predicate(outer, :cancelled?)
        :went_on
      end

      assert_equal(:went_on, outer_value)
      assert_equal([2, 4], Heddle.map([1, 2]) { |number| sleep(0.001) && (2 * number) })
    end
  end

  def test_a_cancel_of_the_outer_scope_passes_the_inner_one
    inner = nil

    run do
      assert_nil(Heddle.scope do |outer|
        Heddle.scope do |scope|
          inner = scope
          outer.cancel
        end

        flunk
      end)
    end

    refute_predicate(inner, :cancelled?)
  end

  def test_map_and_timeouts_in_it
    run do
      assert_nil(Heddle.scope do |scope|
        scope.spawn { sleep(0.001) && scope.cancel }
        Heddle.timeout(20) { Heddle.map([1, 2]) { |number| sleep_and_note(number) } }

        flunk
      end)
    end

    assert_equal([1, 2], log.sort)
  end

  # -- what else happens meanwhile --------------------------------------------------------------------------------

  def test_an_ensure_block_that_raises_wins
    scope = nil
    error = assert_raises(IOError) do
      run do
        Heddle.scope do |one|
          (scope = one).spawn { raise_at_the_end("task") }
          one.cancel
        end
      end
    end

    assert_equal("task", error.message)
    assert_predicate(scope, :cancelled?)
    assert_raises(IOError) { run { Heddle.scope { |one| one.spawn { one.cancel } && raise_at_the_end("block") } } }
    assert_raises(IOError) { run { Heddle.move_on_after(0.001) { raise_at_the_end("block") } } }
    assert_raises(IOError) do
      run { Heddle.move_on_after(0.001) { Heddle.scope { |inner| inner.spawn { raise_at_the_end("inner") } } } }
    end
  end

  def raise_at_the_end(message)
    sleep
  ensure
    raise IOError, message
  end

  def test_several_errors_meanwhile
    error = assert_raises(IOError) do
      run do
        Heddle.move_on_after(0.1) do
          Heddle.scope { |inner| 2.times { |number| inner.spawn { raise_at_the_end(number.to_s) } } }
        end
      end
    end

    assert_equal(%w[0 1], [error.message, *error.suppressed.map(&:message)].sort)
  end

  def test_a_failure_before_the_cancel
    assert_raises(KeyError) do
      run do
        Heddle.scope do |scope|
          Heddle.shield do
            scope.spawn { raise KeyError }
            scope.cancel
          end
        end
      end
    end
  end

  def test_the_cancel_of_the_owner_itself_is_not_lost
    run do
      task = Heddle.spawn do
        Heddle.scope do |scope|
          owner = Heddle.current_task
          Heddle.shield { scope.cancel && Thread.new { owner.cancel }.join }
        end
        log << :left
        sleep(20)
        log << :not_cancelled
      end
      task.wait

      assert_predicate(task, :cancelled?)
    end

    refute_includes(log, :not_cancelled)
  end

  def test_a_timeout_around_it_is_not_lost
    run do
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.01) do
          Heddle.scope { |scope| Heddle.shield { scope.cancel && sleep(0.02) } }
          sleep(20)
        end
      end
    end
  end

  def test_a_shield_holds_it_back
    run do
      Heddle.scope do |scope|
        Heddle.shield do
          scope.cancel
          sleep(0.001)
          log << :whole
        end
        log << :not_reached
      end
      Heddle.move_on_after(0.001) do
        Heddle.shield { sleep(0.01) && (log << :whole) }
        log << :not_reached
      end
    end

    assert_equal(%i[whole whole], log)
  end

  def test_a_block_that_rescues_the_cancel_has_been_left_all_the_same
    run do
      [->(&block) { Heddle.scope { |scope| scope.spawn { scope.cancel } && block.call } },
       ->(&block) { Heddle.move_on_after(0.001, &block) }].each do |leave|
        assert_nil(leave.call do
          Heddle.spawn { sleep_and_note(:task) }
          sleep(20)
        rescue Exception
          :rescued
        end)
      end
    end

    assert_equal(%i[task task], log)
  end

  def test_break_throw_and_return_leave_it_as_always
    run do
      assert_equal(:broken, Heddle.move_on_after(20) { break :broken })
      assert_equal(:thrown, catch(:out) { Heddle.move_on_after(20) { throw :out, :thrown } })
    end
  end

  def test_a_task_that_cleans_up_may_wait_and_start_tasks
    run do
      Heddle.scope do |scope|
        scope.spawn do
          sleep
        ensure
          Heddle.spawn { sleep(0.001) && (log << :said_goodbye) }.wait
          log << :closed
        end
        scope.cancel
      end
    end

    assert_equal(%i[said_goodbye closed], log)
  end

  def test_a_clean_up_that_hangs
    _, err = capture_io do
      Heddle.run(backend: backend) do
        Heddle.scope(grace: 0.01) { |scope| scope.spawn { hang_at_the_end } && scope.cancel }
        task = Heddle.spawn do
          Heddle.scope(grace: 0.01) { |scope| scope.spawn { sleep(0.001) && scope.cancel } && hang_at_the_end }
          :left
        end

        assert_equal(:left, task.value)
      end
    end

    assert_empty(err)
  end

  def hang_at_the_end
    sleep
  ensure
    sleep
  end

  def test_nothing_after_the_end
    run do
      scope = nil
      Heddle.scope { |one| scope = one }

      assert_same(scope, scope.cancel)
      refute_predicate(scope, :cancelled?)
      assert_nil(scope.deadline)
      scope.deadline = 0

      assert_equal(:value, Heddle.scope { sleep(0.001) && :value })
      refute_predicate(scope, :cancelled?)
    end
  end

  def test_a_task_that_is_started_after_the_cancel
    run do
      Heddle.scope do |scope|
        Heddle.shield do
          scope.cancel
          scope.spawn { sleep_and_note(:late) }
        end
      end
    end

    assert_equal([:late], log)
  end

  def test_cancelled_from_many_sides_at_once
    ended = run do
      Array.new(50) do |number|
        Heddle.scope do |scope|
          thread = Thread.new { scope.cancel }
          scope.spawn { sleep_and_note(number) }
          scope.spawn { scope.cancel }
          Heddle.spawn(background: true) { scope.cancel }
          sleep(20)
        ensure
          thread.join
        end
      end
    end

    assert_equal([nil] * 50, ended)
    assert_equal((0...50).to_a, log)
    assert_equal(:undisturbed, run { sleep(0.001) && :undisturbed })
  end

  def test_a_scope_in_an_enumerator_that_is_not_running
    run do
      scope = nil
      numbers = Enumerator.new do |to|
        to << Heddle.scope { |one| (scope = one) && (to << 1) && sleep(20) }
      end
      numbers.next
      scope.cancel
      sleep(0.001)

      assert_nil(numbers.next)
    end
  end

  def test_scopes_that_nobody_asks_any_more_are_collected
    fibers = lambda do
      50.times { Enumerator.new { |to| Heddle.scope { to << 1 } }.next }
      GC.start
      ObjectSpace.each_object(Fiber).count
    end

    run { assert_operator(fibers.call + 100, :>, 4.times.map { fibers.call }.last) }
  end

  def test_a_child_of_a_fork
    status = run do
      Heddle.scope do |scope|
        _, status = Process.wait2(fork { exit!(scope.cancel && scope.deadline.nil? ? 0 : 1) })

        refute_predicate(scope, :cancelled?)
        status
      end
    end

    assert_predicate(status, :success?)
  end

  # -- move_on_after ----------------------------------------------------------------------------------------------

  def test_the_value_of_a_block_that_is_done_in_time
    scope = nil
    run do
      assert_equal(:value, Heddle.move_on_after(20) { |one| (scope = one) && sleep(0.001) && :value })
      refute_predicate(scope, :cancelled?)
      assert_equal(:value, Heddle.move_on_after(nil) { :value })
      Heddle.move_on_after(20) { assert_in_delta(20, Heddle.remaining, 15) }
      assert_nil(Heddle.move_on_after(20) { nil })
    end
    assert_equal(:value, Heddle.move_on_after(20) { :value })
  end

  def test_it_moves_on
    scope = nil

    run do
      assert_nil(Heddle.move_on_after(0.01) do |one|
        (scope = one).spawn { sleep_and_note(:task) }
        sleep_and_note(:block)
      end)
    end

    assert_predicate(scope, :cancelled?)
    assert_equal(%i[block task], log.sort)
    assert_nil(Heddle.move_on_after(0.01) { sleep })
    assert_nil(Heddle.move_on_after(0.01) { Heddle.spawn { sleep } })
  end

  def test_no_time_at_all
    [0, -1, 0.0].each { |none| assert_nil(run { Heddle.move_on_after(none) { flunk } }) }
  end

  def test_a_block_that_computes
    assert_nil(run { Heddle.move_on_after(0.05) { loop { 1 + 1 } } })
  end

  def test_the_earlier_of_two
    run do
      assert_equal(:outer, Heddle.move_on_after(20) { Heddle.move_on_after(0.001) { sleep } || :outer })
      assert_nil(Heddle.move_on_after(0.001) { Heddle.move_on_after(20) { sleep } || flunk })
      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.001) { Heddle.move_on_after(20) { sleep } } }
      assert_nil(Heddle.move_on_after(0.001) { Heddle.scope(deadline: 20) { sleep } })
      assert_raises(Heddle::TimeoutError) { Heddle.move_on_after(20) { Heddle.scope(deadline: 0.001) { sleep } } }
    end
  end

  def test_what_is_asked_wrongly
    assert_raises(ArgumentError) { Heddle.move_on_after(1) }
    ["1", Float::NAN, 1i].each do |wrong|
      assert_match(/\Aseconds: /, assert_raises(ArgumentError) { Heddle.move_on_after(wrong) { nil } }.message)
    end
    assert_match(/\Agrace: /, assert_raises(ArgumentError) { Heddle.move_on_after(0, grace: -1) { nil } }.message)
    assert_match(/\Agrace: /, assert_raises(ArgumentError) { Heddle.scope(grace: "1") { nil } }.message)
  end
end
