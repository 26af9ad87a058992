# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.run and tasks in a blocking fiber and in a trap handler, where Ruby calls no scheduler: the tasks of the outer
# run go on, and so does it.
contract "BlockingRun" do
  heddle_only "Heddle.run"

  # Calls the block in each kind of blocking code, and returns the values.
  def blocking(&block)
    [Fiber.blocking { yield }, Fiber.new(blocking: true, &block).resume,
     Fiber.new { Fiber.blocking { yield } }.resume]
  end

  def until_cancelled
    sleep
  ensure
    sleep(0.005)
    yield
  end

  def test_in_a_blocking_fiber
    events = []
    values = Heddle.run(backend: backend) do
      Heddle.spawn { sleep(0.05) && (events << :outer_task) }
      blocking { Heddle.run { Heddle.spawn { sleep(0.1) && :value }.value } }
    end

    assert_equal(%i[value value value], values)
    assert_equal([:outer_task], events)
    assert_nil(Fiber.scheduler)
  end

  def test_before_the_first_wait_and_after_it
    [0, 0.01].each do |pause|
      value = Heddle.run(backend: backend) do
        sleep(pause) if pause.positive?
        Fiber.blocking { Heddle.run { sleep(0.01) && Fiber.current.blocking? } }
      end

      refute(value)
    end
  end

  def test_it_waits_for_its_tasks
    events = []
    Heddle.run(backend: backend) do
      Fiber.blocking { Heddle.run { Heddle.spawn { sleep(0.02) && (events << :task) } } }
      events << :after
    end

    assert_equal(%i[task after], events)
  end

  def test_the_others_run_meanwhile
    Heddle.run(backend: backend) do
      assert_others_run { Fiber.blocking { Heddle.run { sleep(0.1) && true } } }
    end
  end

  def test_one_in_the_other
    value = Heddle.run(backend: backend) do
      Fiber.blocking { Heddle.run { Fiber.blocking { Heddle.run { sleep(0.01) && :inmost } } } }
    end

    assert_equal(:inmost, value)
  end

  def test_in_many_tasks_at_once
    running = most = 0
    Heddle.run(backend: backend) do
      tasks = Array.new(50) do |i|
        Heddle.spawn do
          most = [most, running += 1].max
          Fiber.blocking { Heddle.run { sleep(0.001) until most == 50 } }
          i
        end
      end

      assert_equal([*0...50], tasks.map(&:value))
    end
  end

  def test_a_failure_stays_there
    ended = []
    Heddle.run(backend: backend) do
      outer = Heddle.spawn { sleep(0.05) && :fine }
      blocking do
        assert_raises(ZeroDivisionError) do
          Heddle.run do
            Heddle.spawn { until_cancelled { ended << true } }
            Heddle.spawn { sleep(0.01) && raise(ZeroDivisionError) }
            sleep
          end
        end
        assert_raises(KeyError) { Heddle.run { raise KeyError } }
      end

      assert_equal(:fine, outer.value)
    end

    assert_equal([true] * 3, ended)
  end

  def test_cancelled_from_outside
    ended = []
    Heddle.run(backend: backend) do
      task = Heddle.spawn do
        Fiber.blocking { Heddle.run { until_cancelled { ended << :inner } } }
      ensure
        ended << :outer
      end
      settle
      task.cancel.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal(%i[inner outer], ended)
  end

  def test_interrupted
    ["Process.kill(:INT, $$)", "exit 3", "Thread.main.raise(KeyError)"].each do |ending|
      outcome = run_ruby(<<~RUBY)
        begin
          Heddle.run(backend: #{backend.inspect}) do
            Thread.new { sleep 0.1; Thread.main.raise(KeyError, "thread") } if #{ending.include?("KeyError")}
            Heddle.spawn { sleep 0.1; #{ending} } unless #{ending.include?("KeyError")}
            Fiber.blocking { Heddle.run { begin; sleep; ensure; sleep 0.01; puts "inner"; end } }
          ensure
            puts "outer"
          end
        rescue Interrupt, SystemExit, KeyError
          puts $!.class
        end
      RUBY

      assert_equal(["inner", "outer", ""], [*outcome.out.lines(chomp: true).first(2), outcome.err], ending)
      assert_match(/^(Interrupt|SystemExit|KeyError)$/, outcome.out)
    end
  end

  def test_waiting_for_a_task
    Heddle.run(backend: backend) do
      values = blocking { Heddle.spawn { sleep(0.02) && :value }.value }

      assert_equal(%i[value value value], values)
      assert(Fiber.blocking { Heddle.spawn { sleep(0.02) }.wait })
      task = Heddle.spawn { sleep }

      assert_nil(Fiber.blocking { task.wait(0.02) })
      task.cancel

      assert_predicate(Fiber.blocking { Heddle.spawn { sleep }.cancel.wait }, :cancelled?)
    end
  end

  def test_waiting_for_a_task_of_another_thread
    name = backend
    ready = Thread::Queue.new
    thread = Thread.new do
      Heddle.run(backend: name) { ready << Heddle.spawn { sleep(0.1) && :value } }
    end
    value = Heddle.run(backend: backend) { Fiber.blocking { ready.pop.value } }

    assert_equal(:value, value)
    thread.join
  end

  def test_a_timeout_strikes_the_blocking_fiber_alone
    waits = { run: -> { Heddle.run { sleep(100) } }, task: -> { wait_for(Heddle.spawn { sleep(100) }) },
              sleep: -> { sleep(100) },
              queue: -> { Thread::Queue.new.pop(timeout: 100) }, compute: -> { loop { Integer.sqrt(2) } },
              nested: -> { Timeout.timeout(100) { Heddle.run { Timeout.timeout(90) { sleep(100) } } } } }
    Heddle.run(backend: backend) do
      other = Heddle.spawn { sleep(0.4) && :fine }
      waits.each do |name, wait|
        took = elapsed do
          blocking { assert_raises(Timeout::Error, name.to_s) { Timeout.timeout(0.05) { wait.call } } }
        end

        assert_includes(0.14..50, took, name.to_s)
      end

      assert_equal(:value, Fiber.blocking { Timeout.timeout(5) { Heddle.run { sleep(0.01) && :value } } })
      assert_equal(:fine, other.value)
    end
  end

  # The handler runs in the fiber that computes.
  def test_in_a_trap_handler_while_one_computes
    out = assert_script(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        trap("USR1") { p Heddle.run { Heddle.spawn { sleep 0.01; :value }.value } }
        after = Queue.new
        Heddle.spawn { after.pop; puts "task" }
        Process.kill("USR1", $$)
        puts "main"
        after << true
      end
    RUBY

    assert_equal(":value\nmain\ntask\n", out)
  end

  def test_in_a_trap_handler_while_all_wait
    out = assert_script(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        handled = Queue.new
        trap("USR1") { p Heddle.run { Heddle.spawn { sleep 0.01; :value }.value }; handled << true }
        task = Heddle.spawn { handled.pop; puts "task" }
        Thread.new { sleep 0.1; Process.kill("USR1", $$) }
        task.wait
        puts "main"
      end
    RUBY

    assert_equal(":value\ntask\nmain\n", out)
  end

  private

  def wait_for(task)
    task.wait
  ensure
    task.cancel
  end
end
