# frozen_string_literal: true

require_relative "../../test_helper"

# An exception that is sent to a thread while one of its fibers is in Thread.handle_interrupt waits for the end of that
# block, as it does without a scheduler. A kill does not.
contract "MaskedThreadRaise" do
  def test_to_itself
    reactor do
      reached = 0
      assert_raises(ArgumentError) { raise_masked { 3.times { sleep(0.002) && (reached += 1) } } }

      assert_equal(3, reached)
    end
  end

  def raise_masked
    Thread.handle_interrupt(ArgumentError => :never) do
      Thread.current.raise(ArgumentError)
      yield
    end
  end

  # The thread of a scheduler whose main block is in a mask. What the block makes of it, and that of the thread.
  def masked_thread(mask)
    heddle_only("schedulers")
    name = backend
    steps = Thread::Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name, grace: 0.5) do
        Thread.handle_interrupt(mask) do
          yield(steps)
          steps << :end_of_mask
        end
        steps << :after
      ensure
        steps << :ensured
      end
    end

    assert_equal(:begun, steps.pop(timeout: 60))
    [thread, steps]
  end

  def taken(steps) = Array.new(steps.size) { steps.pop }

  def test_from_another_thread
    raised = Thread::Queue.new
    thread, steps = masked_thread(ZeroDivisionError => :never) { |log| (log << :begun) && raised.pop }
    thread.raise(ZeroDivisionError)
    raised << true

    assert_raises(ZeroDivisionError) { thread.join(60) }
    assert_equal(%i[end_of_mask ensured], taken(steps))
  end

  def test_of_another_class
    thread, steps = masked_thread(ArgumentError => :never) { |log| (log << :begun) && sleep }
    thread.raise(ZeroDivisionError)

    assert_raises(ZeroDivisionError) { thread.join(60) }
    assert_equal(%i[ensured], taken(steps))
  end

  def test_on_blocking
    thread, steps = masked_thread(ZeroDivisionError => :on_blocking) { |log| (log << :begun) && sleep }
    thread.raise(ZeroDivisionError)

    assert_raises(ZeroDivisionError) { thread.join(60) }
    assert_equal(%i[ensured], taken(steps))
  end

  [Object, Exception].each do |masked|
    define_method("test_a_kill_with_#{masked}") do
      thread, steps = masked_thread(masked => :never) { |log| (log << :begun) && sleep }
      thread.kill

      assert_same(thread, thread.join(60))
      assert_equal(%i[ensured], taken(steps))
    end
  end

  # The mask of a fiber that waits holds for the thread; the others go on.
  def test_other_fibers_meanwhile
    raised = Thread::Queue.new
    thread, steps = masked_thread(ZeroDivisionError => :never) do |log|
      turns = 0
      ticker = Heddle.spawn { loop { sleep(0.001) && (turns += 1) } }
      log << :begun
      raised.pop
      before = turns
      sleep(0.001) until turns > before + 3
      ticker.cancel
      log << true
    end
    thread.raise(ZeroDivisionError)
    raised << true

    assert_raises(ZeroDivisionError) { thread.join(60) }
    assert_equal([true, :end_of_mask, :ensured], taken(steps))
  end

  # A timeout is not sent to a thread where the mask of another fiber would keep it for the wrong one.
  def test_a_timeout_of_a_computing_fiber
    heddle_only("fibers")
    reactor do
      masked = go { Thread.handle_interrupt(Timeout::ExitException => :never) { sleep(0.2) && :undisturbed } }
      computing = go do
        Timeout.timeout(0.02) do
          nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > (@until ||= now + 0.1)
          sleep(1)
        end
      end

      assert_instance_of(Timeout::Error, computing.failure)
      assert_equal(:undisturbed, masked.value)
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
