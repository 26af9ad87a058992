# frozen_string_literal: true

require_relative "../../test_helper"

# A scope that is opened in a rescue or ensure clause: its own tasks clean up nothing. When it ends, they are cancelled
# at once, and do not have the grace period.
contract "ScopesInARescueClause" do
  heddle_only "Heddle.scope"

  # The block of a run that ends long before its grace period is over.
  def run_in_time(&)
    value = nil
    seconds = elapsed { value = Heddle.run(backend: backend, grace: 100, &) }

    assert_operator(seconds, :<, 50, "somebody had the grace period")
    value
  end

  # Calls the block in the ensure clause of a task that is cancelled.
  def in_a_cancelled_task
    result = nil
    run_in_time do
      task = Heddle.spawn do
        sleep
      ensure
        result = yield
      end
      task.cancel.wait
      nil
    end
    result
  end

  def rescuing
    raise(KeyError, "an older one")
  rescue KeyError => e
    yield e
  end

  def test_a_throw_out_of_it
    thrown = run_in_time do
      rescuing do
        catch(:done) do
          Heddle.scope do
            Heddle.spawn { sleep }
            throw(:done, :thrown)
          end
        end
      end
    end

    assert_equal(:thrown, thrown)
  end

  def test_a_break_out_of_it
    task = nil
    value = run_in_time do
      rescuing do
        Heddle.scope do
          task = Heddle.spawn { sleep }
          break :broken
        end
      end
    end

    assert_equal(:broken, value)
    assert_nil(task.error.reason)
  end

  def test_the_same_error_is_raised_in_it
    error = run_in_time do
      rescuing do |older|
        assert_raises(KeyError) do
          Heddle.scope do
            Heddle.spawn { sleep }
            Heddle.spawn { sleep(0.001) && raise(older) }
          end
        end
      end
    end

    assert_equal("an older one", error.message)
  end

  def test_one_that_fails_in_a_cancelled_task
    error = in_a_cancelled_task do
      assert_raises(IOError) { Heddle.map(1..3) { |number| number == 2 ? raise(IOError, "two") : sleep } }
    end

    assert_equal("two", error.message)
  end

  def test_one_with_a_deadline_in_a_cancelled_task
    in_a_cancelled_task do
      assert_raises(Heddle::TimeoutError) { Heddle.scope(deadline: 0.01) { Heddle.spawn { sleep } } }
    end
  end

  def test_one_with_a_background_task_in_a_cancelled_task
    ended = in_a_cancelled_task do
      Heddle.scope { Heddle.spawn(background: true) { sleep } }
      :ended
    end

    assert_equal(:ended, ended)
  end

  def test_one_with_an_isolated_task_in_a_cancelled_task
    value = in_a_cancelled_task { Heddle.scope { Heddle.spawn(isolated: true) { sleep(0.001) && 7 }.value } }

    assert_equal(7, value)
  end

  def test_isolated_and_background_tasks_that_a_cancelled_task_starts_in_the_scope_around_it
    started = in_a_cancelled_task do
      [Heddle.spawn(isolated: true) { sleep(0.001) }, Heddle.spawn(background: true) { sleep }]
    end

    assert_equal(%i[finished cancelled], started.map(&:status))
  end

  def test_what_its_block_starts_to_clean_up_has_the_grace_period
    cleaned = in_a_cancelled_task do
      log = []
      assert_raises(IOError) do
        Heddle.scope do
          raise IOError
        ensure
          Heddle.spawn { sleep(0.01) && (log << :cleaned_up) }
        end
      end
      log
    end

    assert_equal([:cleaned_up], cleaned)
  end
end
