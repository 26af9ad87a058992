# frozen_string_literal: true

require_relative "../../test_helper"

# A scheduler that ends cancels each of its fibers once: nothing is raised in an ensure block that waits.
contract "CancelOnce" do
  def test_an_ensure_block_may_wait_when_the_thread_is_interrupted
    heddle_only("a task")
    ended = []
    assert_raises(RuntimeError) { interrupted { cleaning_tasks(ended) } }

    assert_equal(%i[nested task], ended.sort)
  end

  def test_fibers_and_enumerators_too
    heddle_only("a scheduled fiber")
    ended = []
    assert_raises(RuntimeError) do
      interrupted do
        Fiber.schedule { wait_and_clean(ended, :fiber) }
        Heddle.spawn { Enumerator.new { wait_and_clean(ended, :enumerator) }.next }
        sleep
      end
    end

    assert_equal(%i[enumerator fiber], ended.sort)
  end

  # The main block is about to go on when the thread is killed: it starts no further fiber, which nobody would cancel.
  def test_whoever_is_cancelled_starts_no_more_fibers
    heddle_only("a scheduled fiber")
    started = Thread::Queue.new
    thread = Thread.new { Heddle.run(backend: backend) { start_one_that_is_killed(started) } }
    started.pop
    thread.kill

    assert(thread.join(60), "the thread goes on after its kill")
  ensure
    thread.kill unless thread.nil? || !thread.alive?
  end

  # As a thread cannot rescue its kill. The block is in a loop, because code that rescues a cancel waits anew.
  def test_who_rescues_every_cancel_is_killed_when_the_thread_has_to_end
    heddle_only("a task")
    [
      ->(work) { Heddle.spawn(&work) && sleep },
      ->(work) { Fiber.schedule(&work) && sleep },
      ->(work) { Heddle.spawn { Heddle.scope { Heddle.spawn(&work) && sleep } } && sleep },
      ->(work) { Heddle.spawn { Enumerator.new(&work).next } && sleep }
    ].each { |start| end_what_rescues_everything(start) }
  end

  private

  def end_what_rescues_everything(start)
    log = Thread::Queue.new
    work = proc { rescue_everything(log) }
    thread = Thread.new { Heddle.run(backend: backend, grace: 0.01) { start.call(work) } }
    thread.report_on_exception = false
    log.pop
    sleep(0.001) until thread.stop? # where the task itself runs, it would rescue what the thread is sent
    thread.raise(IOError)

    assert_raises(IOError) { thread.join(10) || flunk("the thread goes on") }
    assert_equal(:ended, log.pop(timeout: 0))
  ensure
    thread.kill.join if thread.alive?
  end

  def rescue_everything(log)
    log << :begun
    loop do
      sleep
    rescue Exception # as workers do that must not end
      nil
    end
  ensure
    log << :ended
  end

  def start_one_that_is_killed(started)
    Fiber.schedule do
      started << true
      Thread.pass until Thread.pending_interrupt?
      sleep
    end
    Fiber.schedule { loop { sleep } }
    sleep
  end

  def interrupted(&)
    target = Thread.current
    thread = Thread.new do
      sleep(0.02)
      target.raise("enough")
    end
    Heddle.run(backend: backend, &)
  ensure
    thread.join
  end

  def cleaning_tasks(ended)
    Heddle.spawn do
      Heddle.run { Heddle.spawn { wait_and_clean(ended, :nested) } }
    ensure
      sleep(0.001)
      ended << :task
    end
    sleep
  end

  def wait_and_clean(ended, name)
    sleep
  ensure
    3.times { sleep(0.001) }
    ended << name
  end
end
