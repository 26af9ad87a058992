# frozen_string_literal: true

require "stringio"

require_relative "../../test_helper"

# Heddle::Limiter: a limited number at the same time, in tasks and in threads.
contract "Limiter" do
  def setup
    super
    skip("plain threads: without Heddle") unless defined?(Heddle::Limiter)
  end

  def test_as_many_as_the_limit
    limiter = Heddle::Limiter.new(3)
    most = running = 0
    reactor do
      20.times do
        go do
          limiter.acquire do
            most = [most, running += 1].max
            sleep(0.001)
            running -= 1
          end
        end
      end
    end

    assert_equal(3, most)
    assert_equal([0, 0, 3], [limiter.count, limiter.waiting, limiter.limit])
  end

  def test_the_value_of_the_block
    limiter = Heddle::Limiter.new(1)

    assert_equal(:value, reactor { limiter.acquire { sleep(0.001) && :value } })
    assert_raises(IOError) { reactor { limiter.acquire { raise IOError } } }
    assert_equal(:value, limiter.acquire { :value }, "without Heddle")
  end

  def test_without_a_block
    limiter = Heddle::Limiter.new(1)
    reactor do
      assert_same(limiter, limiter.acquire)
      waiter = go { limiter.acquire { :value } }
      settle

      assert_equal([1, 1], [limiter.count, limiter.waiting])
      assert_same(limiter, limiter.release)
      assert_equal(:value, waiter.value)
    end

    assert_equal(0, limiter.count)
    assert_raises(Heddle::Error) { limiter.release }
  end

  def test_a_release_in_the_block
    limiter = Heddle::Limiter.new(1)
    reactor { limiter.acquire { limiter.release } }

    assert_equal(0, limiter.count)
    assert_raises(Heddle::Error) { limiter.release }
  end

  def test_first_come_first_served
    limiter = Heddle::Limiter.new(1)
    order = []
    reactor do
      limiter.acquire
      jobs = Array.new(5) do |i|
        go { limiter.acquire { order << i } }.tap { settle }
      end
      limiter.release
      limiter.acquire { order << :later }
      jobs.each(&:value)
    end

    assert_equal([0, 1, 2, 3, 4, :later], order)
  end

  def test_a_cancelled_waiter_leaves_the_line
    heddle_only("cancel")
    limiter = Heddle::Limiter.new(1)
    order = []
    Heddle.run(backend: backend) do
      limiter.acquire
      tasks = Array.new(3) { |i| Heddle.spawn { limiter.acquire { order << i } } }
      tasks[0].cancel.wait
      tasks[2].cancel.wait

      assert_equal(1, limiter.waiting)
      limiter.release
    end

    assert_equal([1], order)
    assert_equal([0, 0], [limiter.count, limiter.waiting])
  end

  # The cancel and the turn come to the waiter at the same time.
  def test_a_turn_on_its_way_to_a_cancelled_waiter_goes_on
    heddle_only("cancel")
    limiter = Heddle::Limiter.new(1)
    [true, false].each do |release_first|
      order = []
      Heddle.run(backend: backend) do
        limiter.acquire
        tasks = Array.new(2) { |i| Heddle.spawn { limiter.acquire { sleep(0) && (order << i) } } }
        steps = [-> { limiter.release }, -> { tasks[0].cancel }]
        (release_first ? steps : steps.reverse).each(&:call)
        tasks[1].wait(10)
      end

      assert_includes(order, 1)
      assert_equal([0, 0], [limiter.count, limiter.waiting])
    end
  end

  def test_a_timeout_while_waiting
    limiter = Heddle::Limiter.new(1)
    reactor do
      limiter.acquire do
        assert_raises(Timeout::Error) { go { Timeout.timeout(0.01) { limiter.acquire { flunk } } }.value }
      end

      assert_equal([0, 0], [limiter.count, limiter.waiting])
    end
  end

  def test_threads_and_tasks_share_it
    limiter = Heddle::Limiter.new(2)
    lock = Mutex.new
    most = running = 0
    use = lambda do
      limiter.acquire do
        lock.synchronize { most = [most, running += 1].max }
        sleep(0.001)
        lock.synchronize { running -= 1 }
      end
    end
    threads = Array.new(3) { Thread.new { 10.times { use.call } } }
    reactor { 10.times { go { 3.times { use.call } } } }
    threads.each(&:join)

    assert_equal(2, most)
    assert_equal([0, 0], [limiter.count, limiter.waiting])
  end

  # An exception may be raised anywhere in a thread; its place is given back.
  def test_killed_and_struck_threads
    limiter = Heddle::Limiter.new(1)
    raise_into_threads { limiter.acquire { Thread.pass } }

    assert_equal([0, 0], [limiter.count, limiter.waiting])
  end

  def test_in_the_child_of_a_fork_nobody_is_in
    heddle_only("without Heddle, once is enough")
    limiter = Heddle::Limiter.new(1)
    rate = Heddle::RateLimiter.new(1, per: 60)
    rate.acquire
    threads = [Thread.new { limiter.acquire { sleep } }, Thread.new { limiter.acquire }, Thread.new { rate.acquire }]
    sleep(0.001) until threads.all?(&:stop?)
    child = fork do
      told = Heddle.run { Heddle.settle([rate]) { |line| Timeout.timeout(0.01) { line.acquire } }.first.error }
      inside = limiter.acquire { limiter.inspect }
      exit!([told.class, inside] == [Timeout::Error, "#<Heddle::Limiter 1 of 1>"])
    end

    assert_predicate(Process.wait2(child).last, :success?)
    assert_equal([1, 1], [limiter.count, limiter.waiting])
  ensure
    threads&.each { |thread| thread.kill.join }
  end

  def test_inspect
    limiter = Heddle::Limiter.new(2)

    assert_equal("#<Heddle::Limiter 1 of 2>", limiter.acquire.inspect)
  end

  def test_the_dump_names_it
    heddle_only("dump")
    text = StringIO.new
    Heddle.run(backend: backend) do
      limiter = Heddle::Limiter.new(1)
      limiter.acquire
      Heddle.spawn { limiter.acquire { nil } }
      Heddle.dump(text)
      limiter.release
    end

    assert_match(/waits for #<Heddle::Limiter 1 of 1/, text.string)
  end

  def test_what_is_asked_wrongly
    [0, -1, 1.5, nil].each do |limit|
      assert_match(/limit/, assert_raises(ArgumentError) { Heddle::Limiter.new(limit) }.message)
    end
  end

  def test_fibers_that_are_about_to_go_on_when_the_run_fails_leave
    limiter = Heddle::Limiter.new(2)
    assert_raises(IOError) do
      Heddle.run(backend: backend) do
        5.times { Fiber.schedule { limiter.acquire { sleep(0) } } }
        raise IOError
      end
    end

    assert_equal([0, 0], [limiter.count, limiter.waiting])
  end
end
