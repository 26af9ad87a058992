# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/internal/loop_thread"

# The thread that runs the jobs of an engine as tasks.
class LoopThreadTest < HeddleTest
  def setup
    super
    @loop = Heddle.const_get(:LoopThread).new { |work| @thread = Thread.new(&work) }
    @thread.report_on_exception = false
  end

  def teardown
    @loop.close
    @loop.join if @thread.alive?
    super
  end

  def test_tasks_of_one_thread
    tasks = Array.new(100) { |number| start("job") { sleep(0.02) && [number, Thread.current] } }

    assert_equal((0...100).map { |number| [number, @thread] }, tasks.map(&:value))
    assert_equal("job", tasks.first.name)
  end

  def test_a_hook_that_waits_refuses_nothing
    assert_equal([:ran], log_with_hook { |work| sleep(0.01) && work.call })
  end

  def test_a_hook_that_fails_refuses_once
    assert_equal([:refused], log_with_hook { sleep(0.01) && raise(IOError) })
  end

  def test_a_failure_is_of_its_own
    other = start { sleep(0.02) && :other }
    failed = start { raise IOError, "of its own" }

    assert_equal("of its own", assert_raises(IOError) { failed.value }.message)
    assert_equal(:other, other.value)
    assert_equal(:one_more, start { :one_more }.value)
  end

  def test_what_a_task_spawns_belongs_to_it
    ended = []
    task = start { Heddle.spawn { sleep(0.02) && (ended << :inner) } && :value }

    assert_equal(:value, task.value)
    assert_equal([:inner], ended)
    assert_raises(IOError) { start { Heddle.spawn { sleep(0.01) && raise(IOError) } }.value }
  end

  def test_a_task_starts_another_one
    assert_equal(:inner, start { start { :inner }.value }.value)
  end

  def test_interrupt
    cleaned = []
    task = start do
      Thread.handle_interrupt(IOError => :never) { sleep(0.05) && cleaned.push(:shielded) }
      sleep
    ensure
      cleaned << :ensured
    end
    @loop.interrupt(task, IOError.new("from outside"))

    assert_equal("from outside", assert_raises(IOError) { task.value }.message)
    assert_equal(%i[shielded ensured], cleaned)
    assert_nil(@loop.interrupt(task, IOError.new("too late")))
  end

  def test_close_waits_for_all
    done = Thread::Queue.new
    10.times { |number| @loop.post { sleep(0.05) && done.push(number) } }
    @loop.close

    assert_nil(@loop.join(0.001))
    assert_same(@thread, @loop.join)
    assert_equal(10, done.size)
    assert_raises(Heddle::Error) { start { nil } }
    assert_raises(Heddle::Error) { @loop.post { nil } }
  end

  # Nobody waits for ever for its start.
  def test_the_thread_is_killed
    waits = start { sleep }
    @thread.kill.join

    assert_predicate(waits, :cancelled?)
    assert_predicate(@loop, :closed?)
    assert_raises(Heddle::Error) { start { nil } }
  end

  # Also not a task that ends with it, and starts another one.
  def test_a_start_when_the_thread_is_killed
    refused = []
    3.times do
      start do
        sleep
      ensure
        refused << assert_raises(Heddle::Error) { start { nil } }
      end
    end
    @thread.kill.join

    assert_equal(3, refused.size)
  end

  # Blocks that it has not begun are refused, each one once.
  def test_what_is_posted_and_the_thread_is_killed
    refused = Thread::Queue.new
    start do
      2.times { |number| @loop.post(refused: -> { refused << number }) { nil } }
      @thread.kill
      sleep
    end
    @thread.join

    assert_equal([0, 1], Array.new(refused.size) { refused.pop })
  end

  # An error of a refusal is raised in the thread, after all of them.
  def test_a_refusal_that_fails
    refused = Thread::Queue.new
    @thread.report_on_exception = false
    start do
      2.times do |number|
        @loop.post(refused: -> { (refused << number) && raise(IOError, "refusal #{number}") }) { nil }
      end
      @thread.kill
      sleep
    end
    error = assert_raises(IOError) { @thread.join }

    assert_equal("refusal 0", error.message)
    assert_equal(2, refused.size)
  end

  private

  # Posts a job while a hook does this with the work of each task.
  # @return [Array<Symbol>] :ran, :refused
  def log_with_hook(&with_work)
    log = Thread::Queue.new
    hook = Heddle.on_spawn { with_work }
    @loop.post("job", refused: -> { log << :refused }) { log << :ran }
    first = log.pop(timeout: 20)
    hook.remove
    @loop.close
    @loop.join
    [first, *Array.new(log.size) { log.pop }]
  end

  # @return [Heddle::Task]
  def start(name = nil)
    started = Thread::Queue.new
    @loop.post(name, refused: started.method(:close)) do
      started << Heddle.current_task
      yield
    end
    started.pop || raise(Heddle::Error, "refused")
  end
end
