# frozen_string_literal: true

require_relative "../../test_helper"

# Thread.handle_interrupt holds back the cancel of a task.
contract "MaskedCancel" do
  define_method(:masked) do |timing = :never, &block|
    Thread.handle_interrupt(Heddle::Cancelled => timing, &block)
  end

  heddle_only "tasks"

  def log = @log ||= []

  # Cancels the task when it waits for the first time.
  def cancelled(&)
    reactor do
      task = Heddle.spawn(&)
      task.cancel
      task.wait

      assert_predicate(task, :cancelled?)
    end
    log
  end

  def test_it_strikes_where_the_block_ends
    cancelled do
      masked do
        sleep(0.02)
        log << :undisturbed
      end
      log << :not_reached
    end

    assert_equal([:undisturbed], log)
  end

  def test_the_waits_after_it_are_whole
    reactor do
      task = Heddle.spawn do
        sleep(0.001)
        masked do
          Thread.new { task.cancel }.join
          sleep(0.001)
          log << :waited
          sleep(0.001)
          log << :waited_again
        end
        log << :not_reached
      end
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal(%i[waited waited_again], log)
  end

  def test_an_immediate_part
    cancelled do
      masked do
        sleep(0.01)
        log << :checked_out
        masked(:immediate) { log << :not_reached }
      ensure
        sleep(0.01)
        log << :checked_in
      end
    end

    assert_equal(%i[checked_out checked_in], log)
  end

  def test_on_blocking
    cancelled do
      masked(:on_blocking) do
        sleep
      ensure
        log << :ended
      end
    end

    assert_equal([:ended], log)
  end

  # The cancel comes at the next wait then.
  def test_a_block_that_fails
    cancelled do
      begin
        masked do
          sleep(0.01)
          raise(ArgumentError)
        end
      rescue ArgumentError
        log << :rescued
      end
      sleep
    end

    assert_equal([:rescued], log)
  end

  def test_a_base_class_holds_it_back_and_another_does_not
    cancelled do
      Thread.handle_interrupt(Exception => :never) do
        sleep(0.01)
        log << :held_back
        Thread.handle_interrupt(Timeout::Error => :immediate) { sleep(0.01) }
        log << :still
        Thread.handle_interrupt(Heddle::Cancelled => :immediate) { log << :not_reached }
      end
    end
    cancelled { Thread.handle_interrupt(StandardError => :never) { sleep } }

    assert_equal(%i[held_back still], log)
  end

  def test_a_scope_that_fails_waits_for_what_is_masked
    assert_raises(RuntimeError) do
      reactor do
        Heddle.spawn do
          masked do
            sleep(0.02)
            log << :cleaned_up
          end
        end
        Heddle.spawn { raise("fails") }
        sleep
      end
    end

    assert_equal([:cleaned_up], log)
  end

  # Else a thread could not be ended.
  [Object, Heddle::Cancelled].each do |masked|
    define_method("test_a_thread_that_is_killed_waits_for_none_with_#{masked}") do
      name = backend
      waiting = Thread::Queue.new
      thread = Thread.new do
        Heddle.run(backend: name) do
          cancelled, = Array.new(2) do
            Heddle.spawn do
              Thread.handle_interrupt(masked => :never) { (waiting << true) && sleep }
            ensure
              log << :ended
            end
          end
          cancelled.cancel
          sleep
        end
      end
      2.times { waiting.pop(timeout: 60) }
      thread.kill

      assert_same(thread, thread.join(60))
      assert_equal(%i[ended ended], log)
    end
  end

  def test_the_mask_of_another_task
    reactor do
      Heddle.spawn { masked { sleep(0.05) } }
      task = Heddle.spawn { sleep }
      task.cancel
      task.wait
      log << :ended
    end

    assert_equal([:ended], log)
  end
end
