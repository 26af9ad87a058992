# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle::FiberPool: a limited number of jobs at the same time, the others in line.
contract "FiberPool" do
  def heddle(&) = Heddle.run(backend: backend, &)

  heddle_only "a form of its own"

  def test_so_many_at_the_same_time_in_the_order_of_their_spawns
    most = running = 0
    order = []
    heddle do
      pool = Heddle::FiberPool.new(3)
      Heddle.without_time_slices do
        20.times do |number|
          pool.spawn do
            order << number
            most = [most, running += 1].max
            sleep(0.001)
            running -= 1
          end
        end

        assert_equal([3, 3, 17], [pool.size, pool.running, pool.waiting])
      end
    end

    assert_equal([3, 0], [most, running])
    assert_equal((0...20).to_a, order, "the scope has waited for those in line")
  end

  def test_the_task_that_it_returns
    heddle do
      pool = Heddle::FiberPool.new(1)
      tasks = Array.new(3) { |i| pool.spawn(i, 10, name: "job #{i}") { |a, b| sleep(0.001) && (a + b) } }

      assert_equal(%i[running waiting waiting], tasks.map(&:status))
      assert_equal("#<Heddle::Task job 2 waiting>", tasks.last.inspect)
      assert_nil(tasks.last.wait(0.0001))
      assert_equal([10, 11, 12], tasks.map(&:value))
      assert_equal([[:finished, "job 2", true]], tasks.last(1).map { |task| [task.status, task.name, task.finished?] })
      assert_same(tasks.first, tasks.first.wait)
      assert_kind_of(Heddle::Task, tasks.last)
    end
  end

  def test_what_waits_in_line_has_no_fiber
    heddle do
      pool = Heddle::FiberPool.new(1)
      size = Fiber.scheduler.size
      release = Thread::Queue.new
      tasks = Array.new(100) { pool.spawn { release.pop } }

      assert_equal(size + 1, Fiber.scheduler.size)
      assert_equal([nil], tasks.drop(1).map(&:fiber).uniq)
      release.close
    end
  end

  # Each of them ends inside of the call that starts it.
  def test_jobs_that_never_wait
    most = 0
    numbers = []
    heddle do
      pool = Heddle::FiberPool.new(2)
      release = Thread::Queue.new
      2.times { pool.spawn { release.pop } }
      3000.times { |number| pool.spawn { (numbers << number) && (most = [most, Fiber.scheduler.size].max) } }
      release.close
    end

    assert_equal((0...3000).to_a, numbers)
    assert_operator(most, :<, 10, "fibers alive")
  end

  def test_a_failing_job_is_a_failing_task
    called = []
    ended = []
    tasks = []
    gate = Thread::Queue.new
    error = assert_raises(IOError) do
      heddle do
        pool = Heddle::FiberPool.new(2)
        tasks << pool.spawn { gate.pop && raise(IOError, "mine") }
        tasks << pool.spawn do
          sleep
        ensure
          ended << :sibling
        end
        10.times { tasks << pool.spawn { called << true } }
        gate << true
        begin
          sleep
        ensure
          ended << :owner
        end
      end
    end

    assert_equal("mine", error.message)
    assert_same(error, tasks.first.error)
    assert_empty(called)
    assert_equal(%i[owner sibling], ended.sort)
    assert_equal([:failed] + ([:cancelled] * 11), tasks.map(&:status))
    assert_same(error, assert_raises(Heddle::Cancelled) { tasks.last.value }.reason)
  end

  def test_a_cancel_in_line
    called = []
    heddle do
      pool = Heddle::FiberPool.new(1)
      release = Thread::Queue.new
      first, second, third = Array.new(3) { |i| pool.spawn { release.pop || (called << i) } }
      waiter = Heddle.spawn { second.wait && :waited }

      assert_same(second, second.cancel("not needed"))
      assert_equal([:cancelled, true, true, 1], [second.status, second.finished?, second.cancelled?, pool.waiting])
      assert_equal("not needed", assert_raises(Heddle::Cancelled) { second.value }.reason)
      assert_same(second, second.cancel)
      assert_equal(:waited, waiter.value)
      release.close
      [first, third].each(&:wait)
    end

    assert_equal([0, 2], called)
  end

  def test_a_cancel_of_one_that_runs
    heddle do
      pool = Heddle::FiberPool.new(1)
      first, second = Array.new(2) { |i| pool.spawn { i.zero? ? sleep : :second } }
      first.cancel

      assert_equal(:second, second.value)
      assert_predicate(first, :cancelled?)
      assert_equal([0, 0], [pool.running, pool.waiting])
    end
  end

  def test_a_cancel_and_a_wait_in_another_thread
    heddle do
      pool = Heddle::FiberPool.new(1)
      release = Thread::Queue.new
      tasks = Array.new(3) { |i| pool.spawn { release.pop || i } }
      value = Thread.new { tasks[1].cancel && tasks[2].value }
      release.close

      assert_equal(2, value.value)
      assert_includes(%i[cancelled finished], tasks[1].status)
    end
  end

  def test_a_job_in_line_ends_a_wait_in_a_blocking_fiber
    heddle do
      pool = Heddle::FiberPool.new(1)
      tasks = Array.new(2) { |i| pool.spawn { sleep(0.001) && i } }

      assert_equal(1, Fiber.blocking { tasks[1].value })
    end
  end

  def test_spawns_from_several_tasks_and_from_jobs
    done = []
    most = running = 0
    heddle do
      pool = Heddle::FiberPool.new(2)
      work = lambda do |name, depth|
        most = [most, running += 1].max
        sleep(0.0005)
        running -= 1
        2.times { |i| pool.spawn("#{name}.#{i}", depth - 1, &work) } if depth.positive?
        done << name
      end
      4.times { |i| Heddle.spawn { sleep(0) && pool.spawn(i.to_s, 2, &work) } }
    end

    assert_equal([4 * 7, 28], [done.size, done.uniq.size])
    assert_equal([2, 0], [most, running])
  end

  def test_a_job_belongs_to_the_scope_of_the_pool
    events = []
    heddle do
      pool = Heddle::FiberPool.new(1)
      release = Thread::Queue.new
      pool.spawn { release.pop }
      Heddle.scope do |scope|
        pool.spawn { events << :job }
        scope.spawn { events << :inner }
      end
      events << :scope
      release.close
    end

    assert_equal(%i[inner scope job], events)
  end

  def test_what_a_job_spawns_belongs_to_it_and_to_its_scope
    events = []
    heddle do
      pool = Heddle::FiberPool.new(1)
      pool.spawn { sleep(0) }
      Heddle.scope do
        pool.spawn do
          Heddle.scope { |scope| scope.spawn { sleep(0.001) && (events << :inside) } }
          events << :scope
          Heddle.spawn { sleep(0.001) && (events << :beside) }
        end
      end
      events << :left
    end

    assert_equal(%i[left inside scope beside], events)
  end

  def test_a_job_has_what_its_spawner_had
    seen = []
    heddle do
      pool = Heddle::FiberPool.new(1)
      release = Thread::Queue.new
      pool.spawn { (Fiber[:other] = 1) && release.pop }
      2.times do |i|
        Heddle.spawn do
          Fiber[:pool_test] = i
          Thread.current[:pool_test] = i
          pool.spawn { seen << [Fiber[:pool_test], Fiber[:other], Thread.current[:pool_test]] }
        end
      end
      pool.spawn { seen << [Fiber[:pool_test], Heddle.current_task.is_a?(Heddle::Task)] }
      release.close
    end

    assert_equal([[0, nil, nil], [1, nil, nil], [nil, true]], seen)
  end

  def test_hooks_on_spawn_are_called_by_the_spawner
    seen = []
    hook = Heddle.on_spawn do |task|
      from = Heddle.current_task&.name
      ->(work) { (seen << [task.name, from]) && work.call }
    end
    heddle do
      pool = Heddle::FiberPool.new(1)
      pool.spawn(name: "first") { sleep(0.001) }
      Heddle.spawn(name: "spawner") { pool.spawn(name: "second") { seen << :work } }
    end

    assert_equal([%w[first main], %w[spawner main], %w[second spawner], :work], seen)
  ensure
    hook&.remove
  end

  def test_the_end_of_the_scope_from_outside
    called = []
    assert_raises(Heddle::TimeoutError) do
      Heddle.timeout(0.02) do
        heddle do
          pool = Heddle::FiberPool.new(1)
          10.times { |i| pool.spawn { (called << i) && sleep } }
        end
      end
    end
    interrupted = Thread.new do
      Thread.current.report_on_exception = false
      heddle do
        pool = Heddle::FiberPool.new(1)
        10.times { |i| pool.spawn { (called << (i * 10)) && sleep } }
        Heddle.shield { sleep(0.05) } # the scope itself ends later
      end
    end
    sleep(0.001) until called.size > 1
    interrupted.raise(IOError)

    assert_raises(IOError) { interrupted.join }
    assert_equal([0, 0], called)
  end

  def test_one_that_cleans_up_while_its_scope_ends
    events = []
    assert_raises(IOError) do
      heddle do
        pool = Heddle::FiberPool.new(1)
        pool.spawn do
          sleep
        ensure
          2.times { |i| pool.spawn { sleep(0.001) && (events << i) } }
        end
        pool.spawn { events << :in_line }
        raise IOError
      end
    end

    assert_equal([0, 1], events)
  end

  def test_a_job_that_waits_for_one_behind_it
    heddle do
      pool = Heddle::FiberPool.new(1)
      seen = pool.spawn { pool.spawn { nil }.then { |task| [task.wait(0.01), task.status, pool.inspect] } }

      assert_equal([nil, :waiting, "#<Heddle::FiberPool 1 of 1, 1 waiting>"], seen.value)
    end
  end

  def test_what_is_asked_wrongly
    [0, -1, 1.5, nil].each do |size|
      assert_match(/\Asize: /, assert_raises(ArgumentError) { heddle { Heddle::FiberPool.new(size) } }.message)
    end
    assert_match(/no Heddle is running/, assert_raises(Heddle::Error) { Heddle::FiberPool.new(1) }.message)
    pool = heddle { Heddle::FiberPool.new(2) }

    assert_match(/has ended/, assert_raises(Heddle::Error) { pool.spawn { nil } }.message)
    heddle do
      ended = Heddle.scope { Heddle::FiberPool.new(1) }

      assert_match(/has ended/, assert_raises(Heddle::Error) { ended.spawn { nil } }.message)
      open = Heddle::FiberPool.new(1)

      assert_match(/thread/, Thread.new { assert_raises(Heddle::Error) { open.spawn { nil } } }.value.message)
      assert_match(/block/, assert_raises(ArgumentError) { open.spawn }.message)
      assert_equal("#<Heddle::FiberPool 0 of 1>", open.inspect)
      2.times { open.spawn { sleep(0.001) } }

      assert_equal("#<Heddle::FiberPool 1 of 1, 1 waiting>", open.inspect)
    end
  end

  # Each job runs once or is cancelled in line, and there are never more of them than the size.
  def test_random_use
    seed = Integer(ENV.fetch("HEDDLE_POOL_SEED", Random.rand(10**9).to_s))
    rng = Random.new(seed)
    30.times do
      size = rng.rand(1..4)
      running = most = 0
      starts = Hash.new(0)
      tasks = []
      heddle do
        pool = Heddle::FiberPool.new(size)
        rng.rand(1..40).times do |number|
          tasks << pool.spawn do
            starts[number] += 1
            most = [most, running += 1].max
            sleep(rng.rand * 0.001) if rng.rand < 0.6
            running -= 1
          rescue Heddle::Cancelled
            running -= 1
            raise
          end
          sleep(rng.rand * 0.0005) if rng.rand < 0.2
          tasks.sample(random: rng).cancel if rng.rand < 0.2
        end
        Thread.new { tasks.sample.cancel }.join
        tasks.sample(random: rng).wait
      end
      statuses = tasks.map(&:status)

      assert_empty(statuses - %i[finished cancelled], "HEDDLE_POOL_SEED=#{seed}")
      assert_operator(most, :<=, size, "HEDDLE_POOL_SEED=#{seed}")
      assert_equal(0, running, "HEDDLE_POOL_SEED=#{seed}")
      assert_equal([1], starts.values.uniq | [1], "HEDDLE_POOL_SEED=#{seed}")
      assert_operator(statuses.count(:finished), :<=, starts.size, "HEDDLE_POOL_SEED=#{seed}")
    end
  end
end
