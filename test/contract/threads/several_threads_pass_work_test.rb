# frozen_string_literal: true

require "monitor"
require_relative "../../test_helper"

# Several threads, each with a scheduler of its own, that pass work to each other.
contract "SeveralThreads" do
  # Runs the block as a task of a scheduler of its own, on a thread of its own.
  def worker(&block)
    name = backend
    Thread.new { reference? ? block.call : Heddle.run(backend: name, &block) }
  end

  def test_work_by_queues
    requests = Thread::Queue.new
    answers = Thread::SizedQueue.new(3)
    workers = Array.new(3) do
      worker do
        tasks = Array.new(5) do
          go do
            while (number = requests.pop)
              answers.push(number * 2)
            end
          end
        end
        tasks.each(&:value)
      end
    end
    received = worker { Array.new(300) { answers.pop }.sum }
    300.times { |number| requests << number }
    requests.close

    assert_equal(300 * 299, received.value)
    workers.each(&:join)
  end

  { "mutex" => -> { Thread::Mutex.new }, "monitor" => -> { Monitor.new } }.each do |name, make|
    define_method("test_a_#{name}_excludes_all") do
      lock = make.call
      inside = counter = 0
      workers = Array.new(3) do
        worker do
          Array.new(10) do
            go do
              20.times do
                lock.synchronize do
                  flunk("two at once") if (inside += 1) > 1
                  counter += 1
                  sleep(0) if (counter % 7).zero?
                  inside -= 1
                end
              end
            end
          end.each(&:value)
        end
      end
      workers.each(&:join)

      assert_equal(600, counter)
    end
  end

  def test_turns_by_a_condition_variable
    lock = Thread::Mutex.new
    changed = Thread::ConditionVariable.new
    turn = 0
    order = []
    workers = Array.new(3) do |own|
      worker do
        20.times do
          lock.synchronize do
            changed.wait(lock) until turn % 3 == own
            order << own
            turn += 1
            changed.broadcast
          end
        end
      end
    end
    workers.each(&:join)

    assert_equal([0, 1, 2] * 20, order)
  end

  def test_a_monitor_condition
    monitor = Monitor.new
    filled = monitor.new_cond
    items = []
    taker = worker do
      Array.new(50) do
        monitor.synchronize do
          filled.wait_while { items.empty? }
          items.shift
        end
      end
    end
    giver = worker do
      50.times do |number|
        monitor.synchronize { items.push(number) && filled.signal }
        sleep(0) if (number % 5).zero?
      end
    end

    assert_equal((0..49).to_a, taker.value)
    giver.join
  end

  def test_bytes_by_pipes_and_sockets
    stages = [pipe, socket_pair, pipe]
    upper = worker do
      while (line = stages[0][0].gets)
        stages[1][1].puts(line.upcase)
      end
      stages[1][1].close
    end
    reverse = worker do
      while (line = stages[1][0].gets)
        stages[2][1].puts(line.chomp.reverse)
      end
      stages[2][1].close
    end
    go_lines = worker do
      100.times { |number| stages[0][1].puts("line#{number}") }
      stages[0][1].close
    end

    assert_equal(Array.new(100) { |number| "LINE#{number}".reverse }, stages[2][0].readlines(chomp: true))
    [upper, reverse, go_lines].each(&:join)
  end

  def test_a_task_waits_for_a_task_of_another_thread
    heddle_only("tasks")
    handed = Thread::Queue.new
    done = Thread::Queue.new
    waited = Thread::Queue.new
    maker = worker { (handed << Heddle.spawn { waited.pop && :made }) && done.pop }
    waiter = worker do
      task = handed.pop
      [task.wait(0.001).tap { waited << true }, task.value]
    end

    assert_equal([nil, :made], waiter.value)
    done << true
    maker.join
  end

  # Ruby before 4.0 may hang when a Ractor ends in which a thread still waits.
  def test_a_ractor_has_no_thread_of_heddles_when_it_ends
    heddle_only("Ractor")
    said = assert_script(<<~RUBY, options: ["-W:no-experimental"])
      class Ractor
        alias value take unless method_defined?(:value)
      end
      ractor = Ractor.new(#{backend.inspect}) do |backend|
        inside = Heddle.run(backend:) do
          Heddle.offload { nil }
          Timeout.timeout(60) { Thread.list.map(&:name) }
        end
        [inside.compact.sort, Thread.list.map(&:name).compact]
      end
      p ractor.value
      Heddle.run(backend: #{backend.inspect}) { Timeout.timeout(60) { Heddle.offload { nil } } }
      p Thread.list.map(&:name).compact.sort
    RUBY
    both = ["heddle blocking pool", "heddle timeouts"]

    assert_equal("#{[both, []]}\n#{both}\n", said)
  end

  # Ruby before 4.0 crashes by itself when several Ractors make fibers at the same time: there, one after the other.
  def test_ractors
    heddle_only("a scheduler for each")
    said = assert_script(<<~RUBY, options: ["-W:no-experimental"])
      start = lambda do |own|
        Ractor.new(own, #{backend.inspect}) do |number, backend|
          Heddle.run(backend: backend) do
            reader, writer = IO.pipe
            queue = Thread::Queue.new
            Heddle.spawn { sleep(0.01) && writer.puts("ractor \#{number}") }
            Heddle.spawn { queue << reader.gets.chomp }
            Array.new(50) { |i| Heddle.spawn { sleep(0.001) && i } }.sum(&:value).to_s + " " + queue.pop
          end
        end
      end
      if RUBY_VERSION >= "4.0"
        puts Array.new(3, &start).map(&:value)
      else
        puts Array.new(3) { |number| start.call(number).take }
      end
    RUBY

    assert_equal(Array.new(3) { |number| "1225 ractor #{number}\n" }.join, said)
  end

  # A thread inherits the storage of the fiber that has started it, in which the scope is.
  def test_spawn_in_a_thread_that_runs_no_heddle
    heddle_only("Heddle.spawn")
    name = backend
    refused = []
    Heddle.run(backend: name) do
      Thread.new { refused << spawn_failure }.join
      Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        Fiber.schedule { refused << spawn_failure }
        Fiber.new { refused << spawn_failure }.resume
      end.join

      assert_equal([Thread.current], Heddle.spawn { [Thread.current] }.value)
    end

    assert_equal([true] * 3, refused.map { |message| message.include?("no Heddle is running here") }, refused.inspect)
  end

  def spawn_failure
    Heddle.spawn { nil }.inspect
  rescue Heddle::Error => e
    e.message
  end

  def test_run_in_a_thread_with_a_scheduler_of_its_own
    heddle_only("Heddle.spawn")
    name = backend
    Heddle.run(backend: name) do
      seen = []
      thread = Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        Fiber.schedule { Heddle.run { Heddle.spawn { sleep(0.001) && (seen << Thread.current) } } }
      end
      thread.join

      assert_equal([thread], seen)
    end
  end
end
