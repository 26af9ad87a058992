# frozen_string_literal: true

require_relative "../../test_helper"

# Ruby hands a lock, an item or a signal to one waiter and forgets it. When a cancel or a timeout of that waiter is on
# its way at the same moment, the waiters behind it must not wait for ever. On plain threads they do.
contract "HandOver" do
  heddle_only "cancels of tasks"

  def setup
    super
    @mutex = Thread::Mutex.new
    @queue = Thread::Queue.new
    @done = []
  end

  def test_a_mutex
    reactor do
      @mutex.lock
      first, second = waiters { |name| @mutex.synchronize { @done << name } }
      first.cancel
      @mutex.unlock
      second.wait

      assert_equal([:second], @done)
      refute_predicate(@mutex, :locked?)
    end
  end

  def test_a_mutex_unlocked_by_another_thread
    reactor do
      locked = Thread::Queue.new
      unlock = Thread::Queue.new
      owner = Thread.new { @mutex.synchronize { locked.push(1) && unlock.pop } }
      locked.pop
      first, second = waiters { |name| @mutex.synchronize { @done << name } }
      first.cancel
      unlock << 1
      Fiber.blocking { owner.join } # no fiber runs until it is unlocked
      second.wait

      assert_equal([:second], @done)
    end
  end

  def test_a_mutex_that_a_thread_waits_for
    reactor do
      @mutex.lock
      first = Heddle.spawn { @mutex.synchronize { @done << :first } }
      sleep(0.01)
      second = Thread.new { @mutex.synchronize { @done << :second } }
      Fiber.blocking { sleep(0.02) } until second.status == "sleep"
      first.cancel
      @mutex.unlock
      second.join

      assert_equal([:second], @done)
    end
  end

  def test_a_monitor
    reactor do
      monitor = Monitor.new
      monitor.enter
      first, second = waiters { |name| monitor.synchronize { @done << name } }
      first.cancel
      monitor.exit
      second.wait

      assert_equal([:second], @done)
    end
  end

  def test_items_of_a_queue
    reactor do
      tasks = waiters(4) { |name| @done << [name, @queue.pop] }
      tasks[0].cancel
      tasks[2].cancel
      @queue << 1 << 2
      tasks.each(&:wait)

      assert_equal([%i[fourth second], [1, 2]], @done.transpose.map(&:sort))
    end
  end

  def test_an_item_of_a_queue_that_nobody_else_waits_at
    reactor do
      task, = waiters(1) { @done << @queue.pop }
      task.cancel
      @queue << 1
      task.wait

      assert_empty(@done)
      assert_equal(1, @queue.pop(timeout: 0))
    end
  end

  # A thread beside it cannot be told: the task takes the item, and is cancelled where it waits next.
  def test_an_item_of_a_queue_that_a_thread_waits_at
    reactor do
      first, = waiters(1) { (@done << @queue.pop) && sleep }
      second = Thread.new { @done << @queue.pop }
      Fiber.blocking { sleep(0.02) } until second.status == "sleep"
      first.cancel
      @queue << 1
      first.wait

      assert_equal([1], @done)
      assert_predicate(first, :cancelled?)
      @queue << 2
      second.join

      assert_equal([1, 2], @done)
    end
  end

  def test_the_end_of_a_queue
    reactor do
      first, second = waiters { |name| @done << [name, @queue.pop] }
      first.cancel
      @queue.close
      second.wait

      assert_equal([[:second, nil]], @done)
    end
  end

  def test_a_place_in_a_sized_queue
    reactor do
      queue = Thread::SizedQueue.new(1)
      queue << :zeroth
      tasks = waiters(3) { |name| queue.push(name) && nil }
      tasks.first.cancel
      got = Array.new(3) { queue.pop }
      tasks.each(&:wait)

      assert_equal(%i[second third zeroth], got.sort)
    end
  end

  def test_an_item_of_a_sized_queue
    reactor do
      queue = Thread::SizedQueue.new(1)
      tasks = waiters(3) { |name| @done << [name, queue.pop] }
      tasks.first.cancel
      queue << 1
      queue << 2
      tasks.each(&:wait)

      assert_equal([%i[second third], [1, 2]], @done.transpose.map(&:sort))
    end
  end

  # A signal cannot be handed on: the task that has it takes what it waited for, and is cancelled where it waits next.
  def test_the_signal_of_a_condition_variable
    reactor do
      condition = Thread::ConditionVariable.new
      count = 0
      first, second = waiters do |name|
        @mutex.synchronize do
          condition.wait(@mutex) while count.zero?
          count -= 1
          @done << name
        end
        sleep(0)
      end
      first.cancel
      2.times { @mutex.synchronize { (count += 1) && condition.signal } }
      [first, second].each(&:wait)

      assert_equal(%i[first second], @done)
      assert_predicate(first, :cancelled?)
    end
  end

  # Both deadlines have come when the loop turns: the timeout of the first in the line, and the end of the sleep of the
  # task that unlocks.
  def test_a_timeout
    reactor do
      @mutex.lock
      first, second = waiters do |name|
        Timeout.timeout(name == :first ? 0.02 : nil) { @mutex.synchronize { @done << name } }
      rescue Timeout::Error
        nil
      end
      unlocker = Heddle.spawn { sleep(0.02) }
      Fiber.blocking { sleep(0.1) }
      unlocker.wait
      @mutex.unlock
      [first, second].each(&:wait)

      assert_equal([:second], @done)
    end
  end

  # The first has the lock or the item already when the exception comes at once, before it has run.
  {
    "raise" => ->(task) { task.fiber.raise(Heddle::Cancelled.new("raised")) },
    "kill" => ->(task) { task.fiber.kill }
  }.each do |how, raise_into|
    define_method("test_a_mutex_before_a_#{how}") do
      reactor do
        @mutex.lock
        first, second = waiters { |name| @mutex.synchronize { @done << name } }
        @mutex.unlock
        raise_into.call(first)
        second.wait

        assert_equal([:second], @done)
        refute_predicate(@mutex, :locked?)
      end
    end

    define_method("test_an_item_before_a_#{how}") do
      reactor do
        first, second = waiters { |name| @done << [name, @queue.pop] }
        @queue << 1
        raise_into.call(first)
        second.wait

        assert_equal([[:second, 1]], @done)
      end
    end

    define_method("test_a_place_before_a_#{how}") do
      reactor do
        queue = Thread::SizedQueue.new(1)
        queue << :zeroth
        first, second = waiters { |name| queue.push(name) && nil }
        got = [queue.pop]
        raise_into.call(first)
        second.wait

        assert_equal(%i[zeroth second], got << queue.pop)
      end
    end
  end

  # A lock goes past all of them in one loop, not by one level of the stack for each. Two locks do so at once.
  { "mutexes" => Thread::Mutex, "monitors" => Monitor }.each do |name, kind|
    define_method("test_#{name}_before_many_that_were_cancelled") do
      run do
        locks = Array.new(2) { kind.new }
        tasks = locks.flat_map { |lock| Array.new(2000) { Heddle.spawn { lock.synchronize { sleep } } } }
        behind = locks.map { |lock| Heddle.spawn { lock.synchronize { :locked } } }
        sleep(0.01)
        tasks.each(&:cancel)

        assert_equal(%i[locked locked], behind.map(&:value))
        assert(tasks.all?(&:cancelled?))
      end
    end
  end

  # The holder is a thread, and the waiters are tasks of several threads.
  def test_a_mutex_before_many_tasks_of_threads
    Heddle.run(backend: backend) do
      go_on = Thread::Queue.new
      @mutex.lock
      threads = Array.new(2) { Thread.new { cancel_waiters(500, go_on) } }
      sleep(0.001) until threads.all? { |thread| thread[:waits] }
      @mutex.unlock
      threads.each { go_on << 1 }

      assert_equal([true, true], threads.map(&:value))
      assert(@mutex.try_lock)
    end
  end

  private

  def cancel_waiters(count, go_on)
    Heddle.run(backend: backend) do
      tasks = Array.new(count) { Heddle.spawn { @mutex.synchronize { sleep } } }
      sleep(0.001)
      tasks.each(&:cancel)
      Thread.current[:waits] = true
      Fiber.blocking { go_on.pop }
      tasks.each(&:wait).all?(&:cancelled?)
    end
  end

  # Tasks that wait, one behind the other.
  def waiters(count = 2, &block)
    tasks = %i[first second third fourth].first(count).map { |name| Heddle.spawn { block.call(name) } }
    sleep(0.01)
    tasks
  end
end
