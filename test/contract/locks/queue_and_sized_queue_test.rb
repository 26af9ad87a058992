# frozen_string_literal: true

require_relative "../../test_helper"

# Thread::Queue and Thread::SizedQueue between fibers and threads.
contract "Queue" do
  def test_pop_waits_for_push
    reactor do
      queue = Thread::Queue.new
      job = go { queue.pop }
      settle

      refute_predicate(job, :finished?)
      queue.push(:item)

      assert_equal(:item, job.value)
    end
  end

  def test_waiters_are_served_in_order
    heddle_only("threads start in any order")
    reactor do
      queue = Thread::Queue.new
      jobs = Array.new(5) { go { queue.pop } }
      5.times { |i| queue.push(i) }

      assert_equal([0, 1, 2, 3, 4], jobs.map(&:value))
    end
  end

  def test_close_ends_all_waiters
    reactor do
      queue = Thread::Queue.new
      jobs = Array.new(5) { go { queue.pop } }
      settle
      queue.close

      assert_equal([nil] * 5, jobs.map(&:value))
      assert_raises(ClosedQueueError) { queue.push(1) }
    end
  end

  def test_num_waiting
    reactor do
      queue = Thread::Queue.new
      3.times { go { queue.pop } }
      settle

      assert_equal(3, queue.num_waiting)
      queue.close
      settle

      assert_equal(0, queue.num_waiting)
    end
  end

  def test_non_block
    reactor { assert_raises(ThreadError) { Thread::Queue.new.pop(true) } }
  end

  # Hazard: woken a little early, pop(timeout:) waited the same time again.
  def test_pop_with_a_timeout
    reactor do
      queue = Thread::Queue.new
      [0.0, 0.05, 0.2].each do |timeout|
        result = :none
        taken = elapsed { result = queue.pop(timeout: timeout) }

        assert_nil(result)
        assert_operator(taken, :>=, timeout)
      end
      # Two hundred at once: a wait that doubled now and then would come after a sleep that is nearly twice as long.
      in_time(0.2, 1, 5, 25) do |timeout|
        waiting = 200.times.map { go { queue.pop(timeout: timeout) } }
        sleep(1.9 * timeout)
        waiting.all?(&:finished?).tap { waiting.each(&:value) }
      end
    end
  end

  def test_pop_with_a_timeout_is_served_in_time
    reactor do
      queue = Thread::Queue.new
      job = go { queue.pop(timeout: 20) }
      settle
      queue.push(:item)

      assert_equal(:item, job.value)
    end
  end

  # The timer of the first wait must not touch the second.
  def test_a_served_timeout_leaves_no_timer_behind
    in_time do |seconds|
      reactor do
        queue = Thread::Queue.new
        job = go { [queue.pop(timeout: seconds), queue.pop(timeout: 200)] }
        settle
        queue.push(1)
        sleep(seconds * 2)
        finished = job.finished?
        queue.push(2)
        [finished, job.value] == [false, [1, 2]]
      end
    end
  end

  def test_many_producers_and_consumers
    reactor do
      queue = Thread::Queue.new
      consumers = Array.new(10) { go { [].tap { |got| while (item = queue.pop) do got << item end } } }
      producers = Array.new(10) { |i| go { 100.times { |j| queue.push((i * 100) + j) && (sleep(0) if j % 10 == 0) } } }
      producers.each(&:value)
      queue.close

      assert_equal((0...1000).to_a, consumers.flat_map(&:value).sort)
    end
  end

  def test_from_another_thread
    reactor do
      queue = Thread::Queue.new
      thread = Thread.new { 3.times { |i| sleep(0.02) && queue.push(i) } }
      items = assert_others_run { Array.new(3) { queue.pop } }
      thread.join

      assert_equal([0, 1, 2], items)
    end
  end

  def test_to_another_thread
    reactor do
      queue = Thread::Queue.new
      answers = Thread::Queue.new
      thread = Thread.new { while (item = queue.pop) do answers.push(item * 2) end }
      100.times do |i|
        queue.push(i)

        assert_equal(i * 2, answers.pop)
      end
      queue.close
      thread.join
    end
  end

  # A program that computes what is left of its time.
  def test_a_negative_timeout_is_over_at_once
    reactor do
      assert_nil(Thread::Queue.new.pop(timeout: -0.001))
      assert_nil(Thread::Queue.new.pop(timeout: -1))
      assert_nil(Thread::SizedQueue.new(1).tap { |queue| queue << 1 }.push(2, timeout: -1))
      thread = Thread.new { sleep }

      assert_nil(thread.join(-1))
      thread.kill.join
    end
  end

  # As ActiveSupport's durations may be.
  def test_a_timeout_that_has_a_to_f
    reactor do
      timeout = Object.new
      def timeout.to_f = 0.01

      assert_nil(Thread::Queue.new.pop(timeout:))
      assert_raises(TypeError) { Thread::Queue.new.pop(timeout: Object.new) }
    end
  end

  def test_a_timeout_beyond_all_times
    reactor do
      queue = Thread::Queue.new
      go { queue << 1 }

      assert_equal(1, queue.pop(timeout: 10**10))
      go { queue << 3 }

      assert_equal(3, queue.pop(timeout: Rational(10**400)))
      go { queue << 2 }

      assert_equal(2, queue.pop(timeout: 1e12))
    end
  end

  def test_sized_queue_push_waits_for_room
    reactor do
      queue = Thread::SizedQueue.new(2)
      pushed = []
      job = go { 5.times { |i| queue.push(i) && (pushed << i) } }
      settle

      assert_equal([0, 1], pushed)
      assert_equal([0, 1, 2, 3, 4], Array.new(5) { queue.pop })
      job.value
    end
  end

  def test_sized_queue_push_with_a_timeout
    reactor do
      queue = Thread::SizedQueue.new(1)
      queue.push(1)
      result = :none
      taken = elapsed { result = queue.push(2, timeout: 0.05) }

      assert_nil(result)
      assert_operator(taken, :>=, 0.05)
      job = go { queue.push(3, timeout: 20) }
      settle

      assert_equal(1, queue.pop)
      job.value

      assert_equal(3, queue.pop)
    end
  end

  def test_sized_queue_close_raises_in_pushers
    reactor do
      queue = Thread::SizedQueue.new(1)
      queue.push(1)
      job = go { queue.push(2) }
      settle
      queue.close

      assert_instance_of(ClosedQueueError, job.failure)
    end
  end

  def test_sized_queue_between_threads
    reactor do
      queue = Thread::SizedQueue.new(3)
      thread = Thread.new { 200.times { |i| queue.push(i) } && queue.close }
      got = []
      while (item = queue.pop) do got << item end
      thread.join

      assert_equal((0...200).to_a, got)
    end
  end
end
