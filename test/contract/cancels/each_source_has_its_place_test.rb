# frozen_string_literal: true

require_relative "../../test_helper"

# Each source of exceptions from outside has a place of its own in a task: a cancel, the failure of each scope, each
# timeout. None takes the place of another, each is withdrawn alone, and the exception that ends the outermost block
# comes first.
contract "PendingExceptions" do
  heddle_only "tasks and scopes"

  def log = @log ||= []

  def run(*, &block) = block ? Heddle.run(backend: backend, grace: 20, &block) : super(*)

  # A task whose scope has failed, and which is cancelled before it hears of that.
  def cancelled_behind_a_failure(&)
    run do
      task = Heddle.spawn do
        begin
          Heddle.scope(&)
        rescue KeyError
          log << :failure
        end
        sleep(10)
        log << :not_cancelled
      end
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([:failure], log)
  end

  def test_a_cancel_and_a_failure_that_a_shield_holds_back
    cancelled_behind_a_failure do |scope|
      owner = Heddle.current_task
      Heddle.shield do
        scope.spawn { raise KeyError }
        Thread.new { owner.cancel }.join
        sleep(0.001)
      end
    end
  end

  def test_a_cancel_and_a_failure_while_the_task_computes
    cancelled_behind_a_failure do |scope|
      owner = Heddle.current_task
      scope.spawn { raise KeyError }
      Thread.new { owner.cancel }.join
      sleep(10)
    end
  end

  def test_the_failures_of_two_scopes_around_a_shield
    run do
      assert_raises(IOError) do
        Heddle.scope do |outer|
          assert_raises(KeyError) do
            Heddle.scope do |inner|
              Heddle.shield do
                inner.spawn { raise KeyError }
                outer.spawn { raise IOError }
                sleep(0.001)
              end
              sleep(10)
            end
          end
          log << :inner
          sleep(10)
          log << :not_reached
        end
      end
    end

    assert_equal([:inner], log)
  end

  # A close does not take the place of a cancel that the task has not heard of.
  def test_a_cancel_and_a_close_of_what_the_task_waits_for
    waits = [->(io) { io.read }, ->(io) { io.wait_readable }, ->(io) { IO.select([io]) }]
    run do
      tasks = waits.map do |wait|
        reader, = pipe
        [Heddle.spawn { wait.call(reader) }, reader]
      end
      tasks.each { |task, reader| task.cancel && reader.close }

      assert(tasks.all? { |task, _| task.wait.cancelled? })
    end
  end

  # The scope of the failure has ended when the cancel is raised.
  def test_what_is_withdrawn_is_withdrawn_alone
    run do
      task = Heddle.spawn do
        assert_raises(KeyError) do
          Heddle.scope do |scope|
            scope.spawn { raise KeyError }
            Thread.new { task.cancel }.join
          end
        end
        log << :ended
        sleep(10)
        log << :not_reached
      end
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([:ended], log)
  end

  def test_of_two_timeouts_that_are_over_the_outer_one_wins
    run do
      error = assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.02) do
          Heddle.timeout(0.01) { Heddle.shield { sleep(0.05) } && sleep }
        rescue Heddle::TimeoutError
          log << :inner
        end
      end

      assert_equal("not done after 0.02 s", error.message)
      assert_empty(log)
    end
  end

  # -- a second cancel -------------------------------------------------------------------------------------------

  def test_a_task_that_rescues_a_cancel_hears_of_the_next_one
    run do
      task = Heddle.spawn do
        3.times do
          sleep(10)
        rescue Heddle::Cancelled => e
          log << e.reason
        end
        log << :ended
      end
      [1, 2, 3].each { |reason| task.cancel(reason) && settle }
      task.wait
    end

    assert_equal([1, 2, 3, :ended], log)
  end

  # It waits for the end of the clauses that the first one runs.
  def test_a_second_cancel_spares_what_cleans_up
    run do
      task = Heddle.spawn { rescue_and_clean_up && sleep(10) && (log << :not_reached) }
      task.cancel(:first)
      settle
      task.cancel(:second)
      task.cancel(:third) # finds its place taken
      task.wait

      assert_equal(:second, task.error.reason)
    end

    assert_equal(%i[ensure rescue], log)
  end

  def test_a_cancel_and_the_end_of_the_scope
    assert_raises(KeyError) do
      run do
        Heddle.spawn { rescue_and_clean_up && sleep(10) && (log << :not_reached) }.cancel
        settle
        raise KeyError
      end
    end

    assert_equal(%i[ensure rescue], log)
  end

  # What a task does after it has rescued the cancel of its scope is its own business: that comes once.
  def test_a_scope_cancels_its_tasks_once
    assert_raises(KeyError) do
      run do
        Heddle.spawn { rescue_and_clean_up && 3.times { sleep(0.001) } && (log << :reached) }
        raise KeyError
      end
    end

    assert_equal(%i[ensure rescue reached], log)
  end

  # -- what is on its way ----------------------------------------------------------------------------------------

  def test_a_timeout_does_not_strike_what_cleans_up_after_a_cancel
    run do
      task = Heddle.spawn do
        Heddle.timeout(0.02) do
          sleep(10)
        ensure
          sleep(0.05)
          log << :cleaned_up
        end
      end
      task.cancel.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([:cleaned_up], log)
  end

  def test_but_a_timeout_of_the_clean_up_does
    run do
      task = Heddle.spawn do
        sleep(10)
      ensure
        begin
          Heddle.timeout(0.01) { sleep(10) }
        rescue Heddle::TimeoutError
          log << :over
        end
        log << :cleaned_up
      end
      task.cancel.wait
    end

    assert_equal(%i[over cleaned_up], log)
  end

  # The timeout is rescued within the scope, and the scope has failed meanwhile.
  def test_a_failure_that_comes_while_a_timeout_around_the_scope_is_on_its_way
    run do
      assert_raises(KeyError) do
        Heddle.timeout(0.02) do
          Heddle.scope do |scope|
            scope.spawn { sleep(0.03) && raise(KeyError) }
            begin
              sleep(10)
            rescue Exception # it is the timeout's
              sleep(0.05)
              log << :cleaned_up
            end
            sleep(10)
            log << :not_reached
          end
        end
      end
    end

    assert_equal([:cleaned_up], log)
  end

  # An error that has ended another task is not on its way here.
  def test_a_cancel_in_a_clause_that_rescues_the_cancel_of_another_task
    run do
      other = Heddle.spawn { sleep }
      other.cancel.wait
      task = Heddle.spawn do
        other.value
      rescue Heddle::Cancelled
        sleep(10)
        log << :not_reached
      end
      task.cancel.wait

      assert_predicate(task, :cancelled?)
    end

    assert_empty(log)
  end

  # -- calls that outlast an exception for them -------------------------------------------------------------------

  def test_an_offloaded_block_that_a_timeout_and_a_cancel_strike
    run do
      gate = Thread::Queue.new
      task = Heddle.spawn do
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { Heddle.offload(stop: -> {}) { gate.pop } } }
        log << :over
        sleep(10)
        log << :not_reached
      end
      sleep(0.05)
      task.cancel
      settle
      gate.close
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([:over], log)
  end

  private

  def rescue_and_clean_up
    begin
      sleep(10)
    ensure
      2.times { sleep(0.001) }
      log << :ensure
    end
  rescue Heddle::Cancelled
    2.times { sleep(0.001) }
    log << :rescue
  end
end
