# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.shield: the block runs to its end, and the exception that should end it is raised afterwards.
contract "Shield" do
  heddle_only "Heddle.shield"

  def run(*, **options, &block)
    block ? Heddle.run(backend: backend, **options, &block) : super(*)
  end

  def test_a_task_that_cancels_itself
    steps = []
    run do
      task = Heddle.spawn do
        Heddle.shield do
          Heddle.current_task.cancel
          sleep(0.001)
          steps << :whole
        end
        steps << :not_reached
      end
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([:whole], steps)
  end

  def test_a_cancel
    log = []
    run do
      task = Heddle.spawn do
        Heddle.shield { sleep(0.02) && (log << :whole) }
        log << :not_reached
      end
      task.cancel
      task.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([:whole], log)
  end

  def test_the_failure_of_a_sibling
    log = []
    assert_raises(IOError) do
      run do
        Heddle.spawn { Heddle.shield { sleep(0.02) && (log << :whole) } && (log << :not_reached) && sleep }
        raise IOError
      end
    end

    assert_includes(log, :whole)
  end

  def test_timeouts
    run do
      { Heddle::TimeoutError => ->(&work) { Heddle.timeout(0.01, &work) },
        Timeout::Error => ->(&work) { Timeout.timeout(0.01, &work) },
        IOError => ->(&work) { Timeout.timeout(0.01, IOError, &work) } }.each do |error, within|
        [-> { sleep(0.03) }, -> { compute(0.5) }].each do |work|
          log = []
          assert_raises(error) do
            within.call { Heddle.shield { work.call && (log << :whole) } && sleep && (log << :not_reached) }
          end

          assert_equal([:whole], log)
        end
      end
    end
  end

  def test_what_is_inside_ends_as_always
    run do
      Heddle.shield do
        task = Heddle.spawn { sleep }

        task.cancel.wait

        assert_predicate(task, :cancelled?)
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { sleep } }
        assert_raises(Timeout::Error) { Timeout.timeout(0.01) { sleep } }
        assert_raises(IOError) { Heddle.scope { |scope| scope.spawn { raise IOError } && sleep } }
      end
    end
  end

  def test_of_two_timeouts_only_the_inner_one_comes_through
    run do
      log = []
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.01) do
          Heddle.shield do
            begin
              Heddle.timeout(0.03) { sleep }
            rescue Heddle::TimeoutError => e
              log << e.message
            end
            sleep(0.001)
            log << :whole
          end
        end
      end

      assert_equal(["not done after 0.03 s", :whole], log)
    end
  end

  def test_the_value_and_the_error_of_the_block
    assert_equal(3, Heddle.shield { 3 })
    run do
      assert_equal(3, Heddle.shield { sleep(0.001) && 3 })
      assert_raises(IOError) { Heddle.shield { sleep(0.001) && raise(IOError) } }
    end
    assert_raises(ArgumentError) { Heddle.shield }
  end

  %w[INT TERM].each do |signal|
    define_method("test_#{signal.downcase}_leaves_it_the_grace_period") do
      outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
        $stdout.sync = true
        begin
          Heddle.run do
            cleaned = Queue.new
            Heddle.spawn { Heddle.shield { cleaned.pop && puts("whole") } && sleep && puts("not reached") }
            Heddle.spawn do
              sleep
            ensure
              Heddle.spawn { sleep(0.01) && puts("cleaned") || cleaned << true }
            end
            sleep(0) && Process.kill("#{signal}", $$)
            sleep
          end
        rescue SignalException => e
          puts e.signm
        end
      RUBY

      assert_equal(["cleaned", "whole", signal == "INT" ? "" : "SIGTERM"], outcome.out.lines(chomp: true), outcome.err)
    end
  end

  # (The block of a run stands for its thread.)
  def test_what_is_sent_to_the_thread_is_raised_in_the_block
    needs_patch(:callers_fiber)
    log = []
    raise_in_run { Heddle.shield { sleep(20).then { log << :whole } } }

    assert_empty(log)
  end

  def test_handle_interrupt_holds_back_what_is_sent_to_the_thread
    needs_patch(:callers_fiber)
    log = []
    raise_in_run { Thread.handle_interrupt(IOError => :never) { sleep(0.1).then { log << :whole } } }

    assert_equal([:whole], log)
  end

  def test_a_plain_fiber_has_the_grace_period_when_the_run_fails
    log = []
    assert_raises(IOError) do
      run do
        Fiber.schedule { Heddle.shield { sleep(0.1).then { log << :whole } } }
        raise IOError
      end
    end

    assert_equal([:whole], log)
  end

  def test_when_the_grace_period_is_over_the_thread_ends
    log = []
    raise_in_run(grace: 0.05) do
      Heddle.spawn { Heddle.shield { sleep_and_note(log) } }
      sleep
    end

    assert_equal([:raised], log)
  end

  private

  # Runs the block in a thread of its own, which gets an error when all of its fibers wait, and ends with that.
  def raise_in_run(**options, &block)
    thread = Thread.new do
      Thread.current.report_on_exception = false
      run(**options, &block)
    end
    sleep(0.01) until thread.stop?
    thread.raise(IOError, "from outside")

    assert_raises(IOError) { thread.value }
  end

  def compute(seconds)
    ends = now + seconds
    nil while now < ends
    true
  end

  def sleep_and_note(log)
    sleep
  ensure
    log << :raised
  end
end
