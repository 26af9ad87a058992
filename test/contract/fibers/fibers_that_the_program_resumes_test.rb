# frozen_string_literal: true

require_relative "../../test_helper"

# Fibers that the program resumes itself (Fiber.new, Enumerator#next), with waits inside, in a task and at top level.
contract "PlainFiber" do
  heddle_only "fibers"

  # Runs the block in a task of Heddle.run, in a Fiber.schedule fiber, and on the root fiber under set_scheduler.
  def everywhere(&block)
    reactor(entry: :run, &block)
    reactor(entry: :set_scheduler, &block)
    name = backend
    Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
      instance_exec(&block)
    end.join
  end

  def test_an_enumerator_with_io_inside
    everywhere do
      reader, writer = pipe
      go { 3.times { |i| sleep(0.005) && writer.puts(i) } && writer.close }
      lines = Enumerator.new { |yielder| loop { (line = reader.gets) ? yielder << line : (raise StopIteration) } }

      assert_equal(%W[0\n 1\n 2\n], [lines.next, lines.next, lines.next])
      assert_raises(StopIteration) { lines.next }
    end
  end

  def test_an_enumerator_that_sleeps
    everywhere do
      ticks = Enumerator.new { |yielder| 5.times { |i| sleep(0.002) && (yielder << i) } }

      assert_equal([0, 1, 2], [ticks.next, ticks.peek, ticks.next, ticks.next].uniq)
    end
  end

  def test_two_enumerators_in_turn
    everywhere do
      one, two = Array.new(2) { |n| Enumerator.new { |yielder| 5.times { |i| sleep(0.001) && (yielder << [n, i]) } } }
      seen = Array.new(5) { [one.next, two.next] }

      assert_equal(Array.new(5) { |i| [[0, i], [1, i]] }, seen)
    end
  end

  def test_a_fiber_that_is_resumed_and_reads
    everywhere do
      reader, writer = pipe
      go { sleep(0.01) && writer.write("text") }
      fiber = Fiber.new { Fiber.yield(reader.readpartial(2)) && reader.readpartial(2) }

      assert_equal("te", fiber.resume)
      assert_equal("xt", fiber.resume(1))
      refute_predicate(fiber, :alive?)
    end
  end

  def test_a_chain_of_resumed_fibers
    everywhere do
      queue = Thread::Queue.new
      go { sleep(0.01) && queue.push(:item) }
      inner = Fiber.new { queue.pop }
      middle = Fiber.new { inner.resume }
      outer = Fiber.new { [middle.resume, sleep(0.001)] }

      assert_equal(:item, outer.resume.first)
    end
  end

  def test_a_task_is_cancelled_while_a_fiber_that_it_resumed_waits
    reader, = pipe
    events = []
    Heddle.run(backend: backend) do
      lines = Enumerator.new do |yielder|
        yielder << reader.gets
      ensure
        events << :inner
      end
      task = Heddle.spawn do
        lines.next
      ensure
        events << :outer
      end
      task.cancel
      task.wait

      assert_predicate(task, :cancelled?)
      assert_equal(%i[inner outer], events)
    end
  end

  def test_a_timeout_strikes_while_a_resumed_fiber_waits
    require "timeout"
    reactor do
      reader, writer = pipe
      lines = Enumerator.new { |yielder| yielder << reader.gets }
      fiber = Fiber.new { Fiber.new { reader.gets }.resume }

      [-> { lines.next }, -> { fiber.resume }].each do |wait|
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { wait.call } }
      end
      writer.puts("more")

      assert_equal("more\n", reader.gets)
    end
  end

  # The timeout belongs to the resumed fiber; the task that resumed it rescues nothing and gets it in the end.
  def test_a_timeout_inside_of_a_resumed_fiber
    require "timeout"
    reactor do
      reader, = pipe
      fiber = Fiber.new do
        Timeout.timeout(0.05) { reader.gets }
      rescue Timeout::Error
        :late
      end

      assert_equal(:late, fiber.resume)
      sleep(0.06)
    end
  end

  def test_others_run_while_a_resumed_fiber_waits
    everywhere do
      turns = 0
      running = true
      go { (turns += 1) && sleep(0.002) while running }
      Fiber.new { sleep(0.01) until turns >= 3 }.resume
      running = false
    end
  end

  # The parent waits in resume: only the resumed fiber may be woken.
  def test_a_resumed_fiber_starts_others
    everywhere do
      order = []
      fiber = Fiber.new do
        Fiber.schedule { sleep(0.005) && (order << :inner) }
        sleep(0.02)
        order << :resumed
        Fiber.yield(1)
        sleep(0.005)
        2
      end

      assert_equal(1, fiber.resume)
      assert_equal(2, fiber.resume)
      assert_equal(%i[inner resumed], order)
    end
  end

  def test_an_error_in_a_resumed_fiber
    everywhere do
      fiber = Fiber.new { sleep(0.002) && raise(ZeroDivisionError) }

      assert_raises(ZeroDivisionError) { fiber.resume }
    end
  end

  def test_many_tasks_with_enumerators
    reactor do
      jobs = Array.new(50) do |n|
        go do
          numbers = Enumerator.new { |yielder| 10.times { |i| sleep(0.001 * (n % 3)) && (yielder << i) } }
          Array.new(10) { numbers.next }
        end
      end

      assert_equal([(0...10).to_a], jobs.map(&:value).uniq)
    end
  end

  # Ruby 4.0 looks at the fiber that asked last, which has ended. Its memory must not be another's by then. The C
  # library writes over freed memory.
  def test_an_enumerator_that_one_task_after_another_asks
    out = assert_script(<<~'RUBY', env: { "HEDDLE_BACKEND" => backend, "MALLOC_PERTURB_" => "255" })
      reader, writer = IO.pipe
      parts = Enumerator.new { |yielder| loop { yielder << reader.readpartial(1) } }
      ask = lambda do |depth|
        next ask.(depth - 1) unless depth.zero?

        task = Heddle.spawn { parts.next }
        writer.write("x")
        task.value
      end
      Heddle.run do
        50.times do
          print(ask.(15))
          Heddle.spawn { sleep(0.0001) }.value
          3.times { GC.start }
          (300..1400).step(16) { |size| Array.new(2) { "\xFF".b * size } }
        end
      end
    RUBY

    assert_equal("x" * 50, out)
  end

  def test_an_abandoned_enumerator
    everywhere do
      10.times do
        endless = Enumerator.new { |yielder| loop { sleep(0) && (yielder << 1) } }
        endless.next
      end
      GC.start
      sleep(0.001)
    end
  end

  def test_lazy_and_zip
    everywhere do
      slow = Enumerator.new { |yielder| 4.times { |i| sleep(0.001) && (yielder << i) } }

      assert_equal([[0, 0], [1, 1], [2, 2]], slow.lazy.zip(slow).first(3))
    end
  end

  # (Outside of a run control comes back at its first wait: test/core_ext/set_scheduler_test.rb.)
  def test_transfer
    %i[run set_scheduler].each do |entry|
      reactor(entry: entry) do
        fiber = Fiber.new { |from| sleep(0.005) && from.transfer(:back) }

        assert_equal(:back, fiber.transfer(Fiber.current))
      end
    end
  end
end
