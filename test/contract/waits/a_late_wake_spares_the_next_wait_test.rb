# frozen_string_literal: true

require_relative "../../test_helper"

# A wake that comes late (a second unblock, a timer, a completion, a close) never ends what the fiber waits for next.
contract "StaleWake" do
  heddle_only "a matter of the scheduler"

  # What a fiber may wait for next, and how that ends as it should.
  waits = {
    "queue" => [->(queue, _) { queue.pop }, ->(queue, _) { queue.push(:right) }],
    "queue_with_timeout" => [->(queue, _) { queue.pop(timeout: 20) }, ->(queue, _) { queue.push(:right) }],
    "sleep" => [->(_, _) { sleep(0.6) && :right }, ->(_, _) {}],
    "read" => [->(_, io) { io.readpartial(1) && :right }, ->(_, io) { io.write("x") }],
    "wait_readable" => [->(_, io) { io.wait_readable(20) && :right }, ->(_, io) { io.write("x") }],
    "select" => [->(_, io) { IO.select([io], nil, nil, 20) && :right }, ->(_, io) { io.write("x") }],
    "process" => [->(_, io) { Process.wait(spawn("read x; true", in: io)) && :right }, ->(_, io) { io.puts("x") }]
  }

  # The two blocks: the first wait, and what ends it and comes late as well.
  define_method(:check) do |name, first, &ending|
    wait, finish = waits.fetch(name)
    reactor do
      one, other = socket_pair
      queue = Thread::Queue.new
      second = false
      job = go do
        first.call
        second = true
        wait.call(queue, one)
      end
      settle
      started = now
      ending.call(job)
      wait_until { second }
      settle

      refute_predicate(job, :finished?)
      finish.call(queue, other)

      assert_equal(:right, job.value)
      assert_operator(now - started, :>=, 0.59) if name == "sleep"
    end
  end

  waits.each_key do |name|
    # Ruby's own ConditionVariable ends a sleep with unblock: there the hook cannot tell a stale one.
    next if name == "sleep"

    # Twice in the same turn: the second finds the fiber ready, and again once it waits for something else.
    define_method("test_a_second_unblock_and_#{name}") do
      queue = Thread::Queue.new
      check(name, -> { Fiber.scheduler.block(queue, nil) }) do |job|
        scheduler = Fiber.scheduler
        2.times { scheduler.unblock(queue, job.fiber) }
        settle
        scheduler.unblock(queue, job.fiber)
      end
    end

    define_method("test_an_unblock_from_another_thread_and_#{name}") do
      queue = Thread::Queue.new
      check(name, -> { Fiber.scheduler.block(queue, nil) }) do |job|
        scheduler = Fiber.scheduler
        Thread.new { 3.times { scheduler.unblock(queue, job.fiber) } }.join
        settle
        Thread.new { 3.times { scheduler.unblock(queue, job.fiber) } }.join
      end
    end
  end

  waits.each_key do |name|
    # The timer of the first wait runs out while the second lasts.
    define_method("test_a_late_timer_and_#{name}") do
      queue = Thread::Queue.new
      check(name, -> { queue.pop(timeout: 0.3) }) do
        queue.push(1)
        sleep(0.35)
      end
    end

    # Data and the timeout fall into the same turn.
    define_method("test_a_timer_in_the_same_turn_and_#{name}") do
      reader, writer = pipe
      check(name, -> { reader.wait_readable(0.03) }) do
        sleep(0.02)
        busy_until(now + 0.02) # no turn: the deadline passes
        writer.write("x")
        busy_until(now + 0.005)
      end
    end

    define_method("test_a_late_close_and_#{name}") do
      reader, writer = pipe
      first = lambda do
        reader.readpartial(1)
      rescue IOError
        nil
      end
      check(name, first) do
        writer.write("x")
        reader.close # together with the data
      end
    end

    define_method("test_late_data_and_#{name}") do
      reader, writer = pipe
      check(name, -> { reader.wait_readable(0.02) }) do
        sleep(0.05)
        writer.write("x")
      end
    end

    define_method("test_an_interrupted_wait_and_#{name}") do
      reader, writer = pipe
      first = lambda do
        reader.readpartial(1)
      rescue ZeroDivisionError
        nil
      end
      check(name, first) do |job|
        job.fiber.raise(ZeroDivisionError)
        writer.write("x")
      end
    end
  end

  private

  def busy_until(time)
    nil while now < time
  end
end
