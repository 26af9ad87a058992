# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.spawn and the task it returns.
contract "Spawn" do
  heddle_only "Heddle.spawn"

  def test_value_and_wait
    run do
      task = Heddle.spawn { sleep(0.01) && :value }

      assert_instance_of(Heddle::Task, task)
      assert_predicate(task, :alive?)
      refute_predicate(task, :finished?)
      assert_equal(:value, task.value)
      assert_same(task, task.wait)
      assert_predicate(task, :finished?)
      refute_predicate(task, :alive?)
      assert_equal(:value, task.value)
    end
  end

  def test_the_block_starts_at_once
    run do
      order = []
      Heddle.spawn { (order << 1) && sleep(0) }
      order << 2

      assert_equal([1, 2], order)
    end
  end

  def test_wait_with_a_timeout
    run do
      task = Heddle.spawn { sleep(0.2) }

      assert_nil(task.wait(0.02))
      assert_nil(task.wait(0))
      assert_same(task, task.wait(20))
    end
  end

  # As with Thread#join. Beside tasks that run it would hang, and there would be no Heddle::Deadlock.
  def test_a_task_cannot_wait_for_itself
    run do
      Heddle.spawn(background: true) { sleep }
      Heddle.spawn(name: "own") do
        here = Heddle.current_task

        assert_match(/its own end.*own/, assert_raises(Heddle::Error) { Timeout.timeout(5) { here.value } }.message)
        assert_raises(Heddle::Error) { Timeout.timeout(5) { Enumerator.new { |y| y << here.wait }.next } }
        assert_nil(here.wait(0.001))
        assert_nil(Heddle.spawn { here.wait(0.001) }.value)
      end
    end
  end

  def test_many_wait_for_one
    run do
      task = Heddle.spawn { sleep(0.02) && :value }
      waiters = Array.new(10) { Heddle.spawn { task.value } }

      assert_equal([:value], waiters.map(&:value).uniq)
    end
  end

  def test_a_thread_waits_for_a_task
    run do
      task = Heddle.spawn { sleep(0.05) && :value }
      thread = Thread.new { task.value }

      assert_equal(:value, thread.value)
    end
  end

  def test_names
    run do
      assert_equal("worker", Heddle.spawn(name: "worker") { nil }.name)
      assert_nil(Heddle.spawn { nil }.name)
      assert_match(/worker/, Heddle.spawn(name: "worker") { nil }.inspect)
    end
  end

  # A name may come from a client: it must change no terminal, and forge no line of a log.
  def test_names_are_shown_in_one_line
    run do
      names = { "a\e[31m\nb é" => 'a\e[31m\nb é', "a\nb": 'a\nb', "a\0\xE4".b => 'a\x00\xE4', "a\u0085b" => 'a\u0085b' }

      names.each do |name, shown|
        assert_equal("#<Heddle::Task #{shown} finished>", Heddle.spawn(name:) { nil }.inspect)
      end
    end
  end

  def test_only_heddle_makes_tasks_and_scopes
    run do
      { Heddle::Task => /Heddle::Task: call Heddle\.spawn\z/, Heddle::Scope => /Heddle::Scope: call Heddle\.scope\z/ }
        .each { |kind, told| assert_match(told, assert_raises(NoMethodError) { kind.new }.message) }
      assert_raises(NoMethodError) { Heddle::Task.new(nil, "name") { flunk } }
      assert_raises(NoMethodError) { Heddle::Scope.new(grace: 3) }
    end
    assert_raises(NoMethodError) { Heddle::Scope.new }
  end

  def test_nil_and_false_are_values
    run do
      assert_nil(Heddle.spawn { nil }.value)
      refute(Heddle.spawn { sleep(0) && false }.value)
    end
  end

  def test_cancel
    run do
      seen = nil
      task = Heddle.spawn do
        sleep
      rescue Exception => e
        seen = e
        raise
      end
      task.cancel
      task.wait

      assert_predicate(task, :finished?)
      assert_instance_of(Heddle::Cancelled, seen)
      refute_kind_of(StandardError, seen)
      assert_raises(Heddle::Cancelled) { task.value }
    end
  end

  def test_cancel_runs_ensure_and_lets_it_wait
    run do
      events = []
      task = Heddle.spawn do
        Thread::Queue.new.pop
      ensure
        sleep(0.01)
        events << :ensured
      end
      task.cancel
      task.wait

      assert_equal([:ensured], events)
    end
  end

  def test_cancel_of_a_task_that_has_ended
    run do
      task = Heddle.spawn { :value }
      task.cancel

      assert_equal(:value, task.value)
    end
  end

  def test_cancel_twice
    run do
      events = []
      task = Heddle.spawn do
        sleep
      ensure
        sleep(0.02)
        events << :ensured
      end
      2.times { task.cancel }
      task.wait

      assert_equal([:ensured], events)
    end
  end

  def test_cancel_from_another_thread
    run do
      task = Heddle.spawn { sleep }
      Thread.new { task.cancel }.join
      task.wait

      assert_raises(Heddle::Cancelled) { task.value }
    end
  end

  def test_cancel_of_itself
    run do
      after = false
      task = nil
      task = Heddle.spawn { sleep(0) && task.cancel && sleep(0) && (after = true) }
      task.wait

      refute(after)
    end
  end

  def test_a_cancelled_task_leaves_its_siblings
    run do
      sibling = Heddle.spawn { sleep(0.02) && :fine }
      Heddle.spawn { sleep }.cancel

      assert_equal(:fine, sibling.value)
    end
  end

  def test_a_failing_task_cancels_its_siblings_and_is_raised
    events = []
    error = assert_raises(ZeroDivisionError) do
      run do
        Heddle.spawn do
          sleep(20)
        ensure
          events << :sibling
        end
        Heddle.spawn { sleep(0.01) && raise(ZeroDivisionError, "first") }
        sleep(20)
      ensure
        events << :main
      end
    end

    assert_equal("first", error.message)
    assert_equal(%i[main sibling], events.sort)
  end

  def test_a_failing_task_while_the_block_has_ended
    error = assert_raises(ZeroDivisionError) do
      run do
        Heddle.spawn { sleep(20) }
        Heddle.spawn { sleep(0.01) && raise(ZeroDivisionError, "late") }
      end
    end

    assert_equal("late", error.message)
  end

  def test_the_first_failure_is_raised
    error = assert_raises(StandardError) do
      run do
        Heddle.spawn { sleep(0.01) && raise("first") }
        Heddle.spawn do
          sleep(20)
        ensure
          raise "second"
        end
      end
    end

    assert_equal("first", error.message)
  end

  def test_a_failure_before_the_first_wait
    error = assert_raises(RuntimeError) { run { Heddle.spawn { raise "at once" } && sleep(20) } }

    assert_equal("at once", error.message)
  end

  # The one who asks for the value gets the error; so does run.
  def test_value_of_a_failed_task
    seen = nil
    assert_raises(ZeroDivisionError) do
      run do
        task = Heddle.spawn { sleep(0.01) && raise(ZeroDivisionError) }
        begin
          task.value
        rescue Exception => e
          seen = e
          raise
        end
      end
    end

    assert_includes([ZeroDivisionError, Heddle::Cancelled], seen.class)
  end

  def test_without_a_scheduler
    error = assert_raises(Heddle::Error) { Heddle.spawn { nil } }

    assert_kind_of(StandardError, error)
    assert_match(/Heddle\.run/, error.message)
    spawning = lambda do
      Heddle.spawn { nil }
    rescue Heddle::Error => e
      e.message
    end

    run { assert_match(/Heddle\.run/, Thread.new(&spawning).value) }
  end

  # Each loses nothing: the scope ends as if it had not been called.
  spawners = {
    "run" => ->(**options, &block) { Heddle.spawn(**options, &block) },
    "scope" => ->(**options, &block) { Heddle.scope { |scope| scope.spawn(**options, &block) } },
    "pool" => ->(**options, &block) { Heddle::FiberPool.new(1).spawn(**options, &block) }
  }
  spawners.each do |name, spawner|
    define_method("test_needs_a_block_in_a_#{name}") do
      run { assert_match(/spawn needs a block\z/, assert_raises(ArgumentError) { spawner.call }.message) }
    end

    define_method("test_the_name_can_be_shown_in_a_#{name}") do
      run do
        [5, "name".encode("UTF-16LE"), Object.new].each do |bad|
          error = assert_raises(ArgumentError) { spawner.call(name: bad) { flunk("it was started") } }

          assert_match(/\Aname: must be /, error.message)
        end
        ["name", :name, "n\xE4me".b, nil].each do |good|
          task = spawner.call(name: good) { 1 }

          assert_equal([good, 1], [task.name, task.value])
        end
      end
    end
  end

  def test_the_timeout_of_wait_is_a_number
    run do
      goes_on = Thread::Queue.new
      task = Heddle.spawn { goes_on.pop }

      ["1", Float::NAN].each do |seconds|
        assert_match(/\Atimeout: /, assert_raises(ArgumentError) { task.wait(seconds) }.message)
      end
      assert_nil(task.wait(-1))
      goes_on << true
    end
  end

  def test_spawn_in_a_plain_fiber
    run do
      queue = Thread::Queue.new
      Fiber.schedule { Heddle.spawn { sleep(0) && queue.push(:ran) } }

      assert_equal(:ran, queue.pop)
    end
  end

  def test_many_tasks
    total = run { Array.new(5000) { |i| Heddle.spawn { sleep(0) && i } }.sum(&:value) }

    assert_equal(4999 * 2500, total)
  end

  def test_a_killed_task
    run do
      fiber = nil
      task = Heddle.spawn { (fiber = Fiber.current) && sleep }
      fiber.kill

      assert_same(task, task.wait(60))
    end
  end

  def test_the_error_of_a_task_keeps_its_backtrace
    error = assert_raises(RuntimeError) { run { Heddle.spawn { sleep(0) && raise("here") } && sleep(5) } }

    assert_includes(error.backtrace.join("\n"), __FILE__)
  end

  def test_arguments
    run do
      assert_equal([1, [2, 3]], Heddle.spawn(1, [2, 3]) { |a, b| sleep(0) && [a, b] }.value)
      assert_equal([[1, 2], "x"], Heddle.spawn([1, 2], "x", name: "named") { |*all| all }.value)
      assert_equal([1, 2], Heddle.spawn([1, 2]) { |a, b| [a, b] }.value)
      assert_raises(ArgumentError) { Heddle.spawn(1, nme: "misspelt") { nil } }
      tasks = (1..3).map { |i| Heddle.spawn(i) { |own| sleep(0.001) && own } }

      assert_equal([1, 2, 3], tasks.map(&:value))
    end
  end

  # What it was doing when the task failed is no cause of it.
  def test_the_error_of_a_task_keeps_its_cause
    error = assert_raises(RuntimeError) { run { Heddle.spawn { sleep(0) && raise("here") } && sleep(5) } }

    assert_nil(error.cause)
  end

  # Linux allows a process about 32,000 stacks of fibers.
  def test_ended_tasks_keep_no_stack
    tasks = run { Array.new(20_000) { Heddle.spawn { Heddle.run { Heddle.spawn { nil } } } } }

    assert(tasks.all?(&:finished?))
  end

  # The report of a wait has the name of the task, and the block that makes it may take long.
  def test_a_task_that_ends_while_its_name_is_made
    value = run do
      task = Heddle.spawn(name: -> { sleep(0.02) && "slow" }) { sleep(0.001) && :value }
      Timeout.timeout(20) { task.value }
    end

    assert_equal(:value, value)
  end
end
