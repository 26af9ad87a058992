# frozen_string_literal: true

require_relative "../../test_helper"

# A scheduler that ends cancels each of its fibers once: an ensure block that waits is not struck in its turn.
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

  private

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
