# frozen_string_literal: true

require_relative "../../test_helper"

# What cleans up and does not come to its end: it has the grace period, is cancelled once more, wherever it waits, and
# is killed at last.
contract "HangingCleanUp" do
  heddle_only "the grace period"

  # Runs the block in a run that fails, and ends although the block's clean-up does not.
  #
  # @return [String] what was said on stderr
  def end_in_spite_of(error = IOError, &block)
    said = nil
    seconds = elapsed do
      _, said = capture_io do
        assert_raises(error) { Heddle.run(backend: backend, grace: 0.1, &block) }
      end
    end

    assert_operator(seconds, :<, 30)
    said
  end

  def forever
    loop do
      sleep
    rescue Exception # nothing but a kill ends it
      nil
    end
  end

  def fail_now = raise(IOError)

  def test_an_ensure_clause
    ended = nil
    end_in_spite_of do
      Heddle.spawn { hang { |error| ended = error } }
      fail_now
    end

    assert_equal("the grace period of 0.1 s is over", ended.message)
  end

  def test_a_shield
    ended = nil
    end_in_spite_of do
      Heddle.spawn do
        Heddle.shield { sleep }
      rescue Heddle::Cancelled => e
        ended = e
        raise
      end
      fail_now
    end

    assert_equal("the grace period of 0.1 s is over", ended.message)
  end

  def test_the_ensure_clause_of_the_block_itself
    ended = nil
    end_in_spite_of do
      Heddle.spawn { sleep(0.001) && fail_now }
      hang { |error| ended = error }
    end

    assert_equal("the grace period of 0.1 s is over", ended.message)
  end

  # Ctrl-C while the tasks end because of something else. They keep their grace period, and are cancelled at its end.
  def test_an_interrupt_during_the_clean_up
    told = interrupt_the_clean_up(1) { raise IOError }

    assert_equal("the grace period of 1 s is over", told)
  end

  # A task that cleans up has no time left then.
  def test_a_second_interrupt_ends_the_grace_period
    needs_patch(:callers_fiber) # else it is not raised in the block
    told = interrupt_the_clean_up(60, interrupts: 2) { sleep }

    assert_equal("the grace period of 60 s is over", told)
  end

  # The inner scope ends first, and the outer one because of the second interrupt.
  def test_a_second_interrupt_ends_the_grace_period_of_the_scope_around_it
    needs_patch(:callers_fiber)
    told = []
    inner = Thread::Queue.new
    thread = Thread.new do
      Heddle.run(backend: backend, grace: 60) do
        Heddle.spawn { hang { |error| told << error.message } }
        Heddle.scope { Heddle.spawn { hang(-> { inner << true }) } && sleep }
      end
    end
    thread.report_on_exception = false
    interrupt(thread)
    inner.pop(timeout: 20)
    interrupt(thread)

    assert_raises(Interrupt) { thread.join(60) || flunk("the run goes on") }
    assert_equal(["the grace period of 60 s is over"], told)
  ensure
    thread.kill.join if thread&.alive?
  end

  def test_a_task_that_is_spawned_in_an_ensure_clause_of_a_task_that_was
    end_in_spite_of do
      Heddle.spawn do
        sleep
      ensure
        Heddle.spawn do
          sleep
        ensure
          Heddle.spawn { forever }
        end
      end
      fail_now
    end
  end

  def test_what_rescues_everything_is_named_and_killed
    said = end_in_spite_of do
      Heddle.spawn(name: "stubborn") { forever }
      fail_now
    end

    assert_match(/\Aheddle: #<Heddle::Task stubborn running> is killed: /, said)
    assert_match(/a_clean_up_that_hangs_test.rb:\d+/, said)
  end

  # A kill runs ensure clauses, and these may wait in their turn.
  def test_ensure_clauses_in_ensure_clauses
    levels = []
    hang_at = lambda do |level|
      sleep
    ensure
      levels << level
      level < 5 ? hang_at.call(level + 1) : forever
    end
    end_in_spite_of do
      Heddle.spawn { hang_at.call(1) }
      Fiber.schedule { hang_at.call(1) }
      fail_now
    end

    assert_equal([1, 1, 2, 2, 3, 3, 4, 4, 5, 5], levels.sort)
  end

  def test_a_task_that_begins_when_the_grace_period_is_over
    ended = false
    end_in_spite_of do
      Heddle.spawn do
        Heddle.shield { sleep }
      ensure
        Heddle.spawn do
          sleep
        ensure
          ended = true
          sleep
        end
      end
      fail_now
    end

    assert(ended)
  end

  def test_in_a_fiber_that_the_task_has_resumed
    said = end_in_spite_of do
      Heddle.spawn { Enumerator.new { forever }.next }
      fail_now
    end

    assert_match(/is killed/, said)
  end

  # The inner scope would give its task more time.
  def test_the_grace_period_of_the_outer_scope_is_over
    end_in_spite_of do
      Heddle.spawn { Heddle.scope(grace: 1000) { Heddle.spawn { hang } } }
      fail_now
    end
  end

  def test_a_scope_within_a_task
    said = end_in_spite_of(KeyError) do
      Heddle.spawn { Heddle.scope { Heddle.spawn { sleep(0.001) && raise(KeyError) } && forever } }
      sleep
    end

    assert_match(/is killed/, said)
  end

  def test_the_close_of_a_pool
    [-> { sleep }, -> { forever }].each do |close|
      end_in_spite_of do
        Heddle::Pool.new(size: 1, close: ->(_) { close.call }) { :connection }.with { nil }
        fail_now
      end
    end
  end

  def test_the_close_of_a_pool_at_the_end_of_a_block_that_has_not_failed
    seconds = elapsed do
      value = Heddle.run(backend: backend, grace: 0.1) do
        Heddle::Pool.new(size: 1, close: ->(_) { sleep }) { :connection }.with { :value }
      end

      assert_equal(:value, value)
    end

    assert_operator(seconds, :<, 30)
  end

  def test_the_stop_of_an_offloaded_block
    ended = false
    end_in_spite_of do
      begun = Thread::Queue.new
      Heddle.spawn do
        Heddle.offload(stop: -> { sleep }) do
          begun << true
          sleep
        ensure
          ended = true
        end
      end
      begun.pop
      fail_now
    end

    assert(ended)
  end

  # An exception for the thread is raised in the owner while it waits for its tasks: they end without it.
  def test_a_task_whose_scope_was_left_by_an_exception_for_the_thread
    needs_patch(:callers_fiber) # else Heddle.run raises it
    ended = nil
    said = leave_a_scope_amid do
      sleep
    rescue Heddle::Cancelled => e
      ended = e
    end

    assert_equal(["the grace period of 0.5 s is over", ""], [ended.message, said])
    assert_match(/is killed/, leave_a_scope_amid { forever })
  end

  private

  # A scope waits for a clean-up when Thread#raise comes. The block of the run goes on, and the run ends.
  def leave_a_scope_amid
    owner = Thread.current
    cleans_up = Thread::Queue.new
    thread = Thread.new { cleans_up.pop && owner.raise(KeyError) }
    _, said = capture_io do
      Heddle.run(backend: backend, grace: 0.5) do
        error = assert_raises(KeyError) do
          Heddle.scope do
            Heddle.spawn do
              sleep
            ensure
              cleans_up << true
              yield
            end
            Heddle.spawn { fail_now }
            sleep
          end
        end

        assert_equal([IOError], error.suppressed.map(&:class))
      end
    end
    said
  ensure
    thread.join
  end

  # Ctrl-C when a task cleans up and does not come to its end.
  #
  # @return [String, nil] the message of the cancel that ends the clean-up
  def interrupt_the_clean_up(grace, interrupts: 1)
    log = Thread::Queue.new
    thread = Thread.new do
      Heddle.run(backend: backend, grace: grace) do
        Heddle.spawn { hang(-> { log << true }) { |error| log << error.message } }
        yield
      end
    end
    thread.report_on_exception = false
    interrupts.times do |number|
      log.pop(timeout: 20) if number == interrupts - 1
      interrupt(thread)
    end

    assert_raises(Interrupt) { thread.join(60) || flunk("the run goes on") }
    log.pop(timeout: 0)
  ensure
    thread.kill.join if thread&.alive?
  end

  def interrupt(thread)
    sleep(0.001) until thread.stop?
    thread.raise(Interrupt)
  end

  def hang(begun = nil)
    sleep
  ensure
    begun&.call
    begin
      sleep
    rescue Heddle::Cancelled => e
      yield e if block_given?
    end
  end
end
