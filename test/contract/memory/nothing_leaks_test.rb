# frozen_string_literal: true

# bin/test: takes 15 s, 0.7 of a core

require_relative "../../test_helper"

# Memory, fibers and descriptors stay flat over many operations.
contract "Leak" do
  time_limit 600

  heddle_only "fibers"

  # Runs the block again; that must not add memory.
  def assert_flat(count, allowed_kb: 6000)
    reactor do
      yield(count)
      assert_below(allowed_kb, "memory grew by so many KB in #{count} rounds") { grown { yield(count) } }
    end
  end

  # Kilobytes.
  def grown
    GC.start
    first = memory_kb
    yield
    GC.start
    memory_kb - first
  end

  # Hazard: a finished fiber never really ends, so that its stack is kept until the next collection.
  def test_a_hundred_thousand_spawns
    assert_flat(100_000) do |count|
      (count / 100).times { Array.new(100) { |i| Fiber.schedule { sleep(0) if i.even? } } && sleep(0) && sleep(0) }
    end
    GC.start

    assert_operator(ObjectSpace.each_object(Fiber).count(&:alive?), :<, 50)
  end

  def test_tasks
    assert_flat(20_000) { |count| (count / 100).times { Heddle.run { 100.times { Heddle.spawn { sleep(0) } } } } }
  end

  def test_timed_waits
    assert_flat(50_000) do |count|
      queue = Thread::Queue.new
      reader, writer = pipe
      count.times do |i|
        queue.pop(timeout: 0)
        queue.push(1)
        queue.pop(timeout: 10)
        reader.wait_readable(0) if i % 10 == 0
        writer.write("x") && reader.wait_readable(5) && reader.readpartial(1) if i % 10 == 0
      end
    end
  end

  # Hazard: half a million cancelled timeouts retained.
  def test_timeouts_that_are_set_and_cancelled
    require "timeout"
    assert_flat(50_000) { |count| count.times { Timeout.timeout(1000) { nil } } }
  end

  def test_pipes_that_come_and_go
    assert_flat(5000) do |count|
      done = Thread::Queue.new
      count.times do
        reader, writer = IO.pipe
        Fiber.schedule { done.push(reader.readpartial(1)) }
        writer.write("x")
        done.pop
        [reader, writer].each(&:close)
      end
    end
  end

  def test_killed_waits
    assert_flat(20_000) do |count|
      reader, = pipe
      count.times { Fiber.schedule { reader.wait_readable(100) }.kill }
    end
  end

  def test_schedulers_that_come_and_go
    2.times { 50.times { Heddle.run(backend: backend) { sleep(0) } } }
    before = descriptor_count
    assert_below(6000) { grown { 300.times { Heddle.run(backend: backend) { sleep(0) } } } }

    assert_equal(before, descriptor_count)
  end

  def test_children
    reactor do
      Process.wait(spawn("true"))
      before = descriptor_count
      30.times { Process.wait(spawn("true")) }

      assert_equal(before, descriptor_count)
    end
  end

  # The kernel counts a locked page per ring: what is given back late runs into the limit.
  def test_many_schedulers_at_once
    name = backend
    gate = Thread::Queue.new
    threads = Array.new(30) { Thread.new { Heddle.run(backend: name) { gate.pop } } }
    sleep(0.1)
    gate.close
    threads.each(&:join)
  end
end
