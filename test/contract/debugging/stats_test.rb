# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.stats shows the work that waits, and the work that has been done.
contract "Stats" do
  heddle_only "they count nothing"

  # The counts that are larger after the block than before.
  def counted
    before = Heddle.stats
    yield
    after = Heddle.stats
    %i[started polls closes cancels].to_h { |name| [name, after.public_send(name) - before.public_send(name)] }
  end

  def compute(seconds)
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
  end

  def test_nothing_runs
    stats = Heddle.stats

    assert_equal({ running: 0, ready: 0, io: 0, sleep: 0, blocked: 0, process: 0, worker: 0 }, stats.tasks)
    assert_equal([[], 0], [stats.schedulers, stats.timers])
    assert_predicate(stats.tasks, :frozen?)
  end

  def test_tasks_by_their_state
    reader, = pipe
    other, = pipe
    tasks = run do
      child = spawn("sleep 60")
      waits = [-> { reader.read(1) }, -> { IO.select([other]) }, -> { sleep }, -> { Thread::Queue.new.pop },
               -> { Process.wait(child) }].map { |wait| Heddle.spawn(&wait) }
      sleep(0.01)
      waits << Heddle.spawn { sleep(0) }
      Heddle.stats.tasks.tap { waits.each(&:cancel) }
    ensure
      Process.kill(:KILL, child)
      Process.wait(child)
    end

    assert_equal({ running: 1, ready: 1, io: 2, sleep: 1, blocked: 1, process: 1, worker: 0 }, tasks)
  end

  def test_its_caller_is_no_task
    first = run { Heddle.stats.tasks }

    assert_equal([1, 1], [first[:running], first.values.sum])
  end

  def test_what_another_thread_sees
    tasks = run do
      Heddle.spawn(background: true) { sleep }
      Thread.new { Heddle.stats.tasks }.value
    end

    assert_equal([0, 1, 1], tasks.values_at(:running, :sleep, :blocked))
  end

  def test_timers
    assert_equal(2, run do
      Heddle.spawn(background: true) { sleep(100) }
      Timeout.timeout(100) { Heddle.stats.timers }
    end)
  end

  def test_tasks_and_fibers_that_were_started
    counts = counted { run { 3.times { Heddle.spawn { Fiber.schedule { sleep(0.001) } } } } }

    assert_equal(1 + 6, counts[:started])
    assert_operator(counts[:polls], :>, 0)
  end

  def test_closes
    counts = counted do
      run { 2.times { IO.pipe.each(&:close) } }
      IO.pipe.each(&:close) # not in a task
    end

    assert_equal(4, counts[:closes])
  end

  def test_cancels
    counts = counted do
      run do
        3.times.map { Heddle.spawn { sleep } }.each(&:cancel)
        Heddle.race(-> { sleep(0.001) }, -> { sleep }, -> { sleep })
        begin
          Heddle.timeout(0.001) { sleep } # not a cancel
        rescue Heddle::TimeoutError
          nil
        end
      end
    end

    assert_equal(3 + 2, counts[:cancels])
  end

  # Then a timer that is over has to wait.
  def test_a_task_that_computes
    needs_whole_turns
    latency = run do
      Heddle.spawn { sleep(0.01) }
      compute(0.1)
      sleep(0.001)
      Heddle.stats.schedulers.first.loop_latency
    end

    assert_operator(latency.max, :>=, 0.1)
    assert_in_delta(latency.max, latency.sum, latency.sum)
    assert_operator(latency.p50, :<=, latency.max)
    assert_equal([latency.max, latency.max], [latency.quantile(1), latency.p99])
  end

  # The loop looks at the kernel between them, but the last of them waits for all others.
  def test_a_long_queue
    needs_whole_turns
    latency = run do
      30.times { Heddle.spawn { sleep(0) && compute(0.004) } }
      sleep(0.001)
      Heddle.stats.schedulers.first.loop_latency
    end

    assert_operator(latency.max, :>=, 0.1)
  end

  def test_a_loop_that_rests
    latency = run do
      3.times { sleep(0.2) }
      Heddle.stats.schedulers.first.loop_latency
    end

    assert_operator(latency.p50, :<, 0.1)
  end

  def test_buckets
    latency = run do
      sleep(0.001)
      compute(0.002)
      sleep(0.001)
      Heddle.stats.schedulers.first.loop_latency
    end
    buckets = latency.buckets

    assert_equal(buckets.keys.sort, buckets.keys)
    assert_equal(buckets.values.sort, buckets.values)
    assert_equal([Float::INFINITY, latency.count], buckets.to_a.last)
    assert_in_delta(0.0042, buckets.keys[4], 0.0001)
    assert_operator(buckets.values[3], :<, latency.count)
  end

  def test_a_latency_of_nothing
    latency = Heddle::Stats::Latency.new([0] * 106, 0.0, 0.0)

    assert_equal([nil, nil, 0], [latency.p50, latency.p99, latency.count])
    assert_match(/of nothing/, latency.inspect)
    assert_match(/\Ashare: /, assert_raises(ArgumentError) { latency.quantile(2) }.message)
    assert_match(/\Ashare: /, assert_raises(ArgumentError) { latency.quantile("a") }.message)
  end

  def test_each_scheduler_and_their_sums
    stats = run do
      Heddle.spawn { sleep(0.5) }
      Thread.new do
        Heddle.run(backend: "epoll") do
          2.times { Heddle.spawn(background: true) { sleep } }
          Heddle.stats
        end
      end.value
    end
    own, other = stats.schedulers.partition { |one| one.thread == Thread.current }.map(&:first)

    assert_equal([backend, "epoll", 1, 2], [own.backend, other.backend, own.tasks[:sleep], other.tasks[:sleep]])
    assert_equal([3, 3], [other.started, stats.tasks[:sleep]])
    assert_equal(stats.timers, own.timers + other.timers)
  end

  def test_what_ended_schedulers_have_counted_stays
    before = Heddle.stats
    5.times { run { sleep(0.0001) } }
    after = Heddle.stats

    assert_equal(5, after.started - before.started)
    assert_operator(after.loop_latency.count, :>=, before.loop_latency.count)
    assert_operator(after.loop_latency.max, :>=, before.loop_latency.max)
  end

  def test_a_child_begins_anew
    run { 3.times { Heddle.spawn { sleep(0) } } }
    reader, writer = pipe
    child = run do
      fork do
        stats = Heddle.stats
        writer.write([stats.started, stats.polls, stats.closes, stats.loop_latency.count,
                      stats.tasks.values.sum].inspect)
        exit!(0)
      end
    end
    Process.wait(child)
    writer.close

    assert_equal("[0, 0, 0, 0, 0]", reader.read)
  end

  def test_a_child_does_not_have_the_schedulers_of_other_threads
    reader, writer = pipe
    stop = Thread::Queue.new
    began = Thread::Queue.new
    thread = Thread.new { run { began.push(true) && stop.pop } }
    began.pop
    child = fork do
      writer.write([Heddle.stats.schedulers, Heddle.stats.tasks.values.sum].inspect)
      exit!(0)
    end
    Process.wait(child)
    stop.push(true)
    thread.join
    writer.close

    assert_equal("[[], 0]", reader.read)
  end

  # (A worker may have its answer before anybody looks: then its task is ready.)
  def test_the_workers
    stats = run do
      Array.new(100) do
        Heddle.spawn(background: true) do
          Addrinfo.getaddrinfo("heddle-stats.invalid", 80)
        rescue SocketError
          nil
        end
        Heddle.stats
      end
    end
    seen = stats.find { |one| one.tasks[:worker].positive? }

    assert_equal(1, stats.first.tasks.values_at(:worker, :ready).sum)
    assert_operator(seen.workers[:threads], :>=, 1)
  end

  def test_the_threads_of_the_pool
    stats = run do
      2.times { Heddle.spawn { Heddle.offload { sleep(0.2) } } }
      sleep(0.01)
      Heddle.stats
    end

    assert_operator(stats.pool[:threads], :>=, 2)
    assert_equal(0, stats.pool[:queued])
  end

  def test_nothing_is_allocated
    queue = Thread::Queue.new
    answers = Thread::Queue.new
    run do
      Heddle.spawn { answers << nil while queue.pop }
      turn = lambda do |_|
        queue << true
        answers.pop
        sleep(0)
      end
      100.times(&turn)
      before = GC.stat(:total_allocated_objects)
      1000.times(&turn)

      assert_operator(GC.stat(:total_allocated_objects) - before, :<, 100)
      queue.close
    end
  end
end

# The counters are those of each Ractor, as its schedulers are.
class StatsOfRactorsTest < HeddleTest
  def test_a_ractor_has_its_own
    outcome = run_ruby(<<~RUBY)
      Warning[:experimental] = false
      Heddle.run { 5.times { Heddle.spawn { sleep(0) } } }
      ractor = Ractor.new do
        Heddle.run { sleep(0) }
        Heddle.stats.started
      end
      p [ractor.respond_to?(:value) ? ractor.value : ractor.take, Heddle.stats.started]
    RUBY

    assert_equal("[1, 6]\n", outcome.out, outcome.err)
  end
end
