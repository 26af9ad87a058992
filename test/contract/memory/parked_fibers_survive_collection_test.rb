# frozen_string_literal: true

# bin/test: takes 11 s, 0.6 of a core

require_relative "../../test_helper"

# Fibers, IOs and buffers of parked fibers survive collection and compaction.
contract "Gc" do
  heddle_only "parked fibers"

  # Fibers that wait in all ways, nothing else referring to them; yields, then lets them end.
  def with_parked_fibers(count = 20)
    reactor do
      results = []
      pairs = Array.new(count) { socket_pair }
      pipes = Array.new(count) { pipe }
      queue = Thread::Queue.new
      mutex = Thread::Mutex.new
      mutex.lock
      pairs.each_with_index do |(one, _), i|
        Fiber.schedule { results << [:read, i, one.readpartial(100), "tail #{i}"] }
        Fiber.schedule { results << [:queue, i, queue.pop, "tail #{i}"] }
        Fiber.schedule { mutex.synchronize { results << [:mutex, i, 0, "tail #{i}"] } }
        Fiber.schedule { results << [:sleep, i, sleep(0.05 + (i * 0.001)) && 0, "tail #{i}"] }
        Fiber.schedule { results << [:select, i, IO.select([pipes[i][0]])[0].size, "tail #{i}"] }
      end
      yield
      pairs.each_with_index { |(_, other), i| other.write("data #{i}") }
      pipes.each { |_, writer| writer.write("x") }
      count.times { |i| queue.push("item #{i}") }
      mutex.unlock
      wait_until { results.size == count * 5 }

      assert(results.all? { |_, i, _, tail| tail == "tail #{i}" })
      assert(results.all? { |kind, i, data, _| kind != :read || data == "data #{i}" })
      assert_equal(count * 5, results.uniq.size)
    end
  end

  def test_collection
    with_parked_fibers { 5.times { GC.start } }
  end

  def test_minor_collections
    with_parked_fibers { 20.times { Array.new(1000) { +"x" } && GC.start(full_mark: false) } }
  end

  def test_compaction
    skip("no GC.compact here") unless GC.respond_to?(:compact)
    with_parked_fibers do
      3.times { GC.compact }
      can = GC.respond_to?(:verify_compaction_references)
      GC.verify_compaction_references(expand_heap: true, toward: :empty) if can
    rescue NotImplementedError => e
      skip(e.message)
    end
  end

  def test_auto_compaction
    skip("no GC.auto_compact here") unless GC.respond_to?(:auto_compact=)
    GC.auto_compact = true
    with_parked_fibers { 3.times { GC.start } }
  rescue NotImplementedError => e
    skip(e.message)
  ensure
    GC.auto_compact = false if GC.respond_to?(:auto_compact=)
  end

  def test_stress
    with_parked_fibers(3) do
      GC.stress = true
      reader, writer = pipe
      job = go { reader.gets }
      sleep(0.001)
      writer.puts("line")

      assert_equal("line\n", job.value)
      assert_nil(reader.wait_readable(0.001))
      assert_nil(IO.select([reader], nil, nil, 0.001))
      assert_nil(Thread::Queue.new.pop(timeout: 0.001))
      system("true")
      Addrinfo.getaddrinfo("localhost", 80)
      go { sleep }.fiber.kill
      Heddle.spawn { sleep(0) }.wait if Fiber[:heddle_scope]
    ensure
      GC.stress = false
    end
  end

  def test_stress_in_the_whole_life_of_a_scheduler
    Heddle.run(backend: backend) { nil } # Ruby's methods are replaced with the first one
    GC.stress = true
    value = Heddle.run(backend: backend) { Heddle.spawn { sleep(0.001) && "value" }.value }
    GC.stress = false

    assert_equal("value", value)
  ensure
    GC.stress = false
  end

  def test_a_scheduler_is_collected
    name = backend
    20.times do
      Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        Fiber.schedule { sleep(0.001) }
      end.join
    end
    GC.start
    GC.start

    assert_operator(ObjectSpace.each_object(Heddle::Scheduler).count, :<, 15)
  end

  def test_an_io_that_nobody_refers_to_any_more
    reactor do
      20.times { Fiber.schedule { IO.pipe.first.wait_readable(0.05) } }
      GC.start
      sleep(0.1)
      GC.start
    end
  ensure
    GC.start # closes the pipes
  end

  def test_memsize
    require "objspace"

    reactor { assert_operator(ObjectSpace.memsize_of(Fiber.scheduler), :>, 0) }
  end
end
