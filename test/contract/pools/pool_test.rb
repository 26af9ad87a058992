# frozen_string_literal: true

require "stringio"

require_relative "../../test_helper"
require "support/pools"

# Heddle::Pool: connections that tasks and threads share.
contract "Pool" do
  include TestSupport::Pools

  def test_as_many_as_its_size_made_when_they_are_needed
    pool = make_pool(size: 3)
    most = running = 0
    reactor do
      pool.with { sleep(0.001) }

      assert_equal(1, @made)
      20.times do
        go do
          pool.with do
            most = [most, running += 1].max
            sleep(0.001)
            running -= 1
          end
        end
      end
    end

    assert_equal([3, 3], [most, @made])
    assert_equal([0, 3, 0], state(pool))
    assert_equal(3, pool.size)
  end

  def test_the_value_of_the_block_and_its_error
    pool = make_pool
    reactor do
      assert_equal("connection 1 used", pool.with { |connection| sleep(0.001) && "#{connection} used" })
      error = ArgumentError.new("mine")

      assert_same(error, assert_raises(ArgumentError) { pool.with { raise error } })
      assert_equal("connection 1", pool.with { |connection| connection })
    end
    assert_equal("connection 1", pool.with { |connection| connection }, "without Heddle")
  end

  def test_what_leaves_the_block_otherwise_gives_back
    pool = make_pool
    reactor do
      assert_equal(1, pool.with { break 1 })
      assert_equal(2, -> { pool.with { return 2 } }.call)
      assert_equal(3, catch(:done) { pool.with { throw(:done, 3) } })
      assert_equal("connection 1", pool.with { |connection| connection })
    end
  end

  def test_nil_is_a_connection_like_any_other
    made = 0
    closed = []
    pool = Heddle::Pool.new(size: 1, close: ->(connection) { closed << connection }) do
      made += 1
      nil
    end
    reactor do
      3.times { assert_nil(pool.with { |connection| pool.with { connection } }) }

      assert_equal([1, [0, 1, 0]], [made, state(pool)])
      pool.with { pool.discard }
      pool.with { nil }

      assert_equal([2, [nil]], [made, closed])
    end
  end

  def test_first_come_first_served
    pool = make_pool
    order = []
    reactor do
      jobs = pool.with do
        Array.new(5) { |i| go { pool.with { order << i } }.tap { settle } }
      end
      pool.with { order << :later }
      jobs.each(&:value)
    end

    assert_equal([0, 1, 2, 3, 4, :later], order)
  end

  def test_the_one_that_was_used_last_is_used_next
    pool = make_pool(size: 2)
    reactor do
      pool.with { go { pool.with { nil } }.value }

      assert_equal(2, pool.idle)
      used = Array.new(3) { pool.with { |connection| connection } }

      assert_equal(["connection 1"] * 3, used)
    end
  end

  def test_no_connection_in_time
    pool = make_pool(size: 1, timeout: 0.02)
    reactor do
      patient = pool.with do
        error = go { pool.with { flunk } }.failure

        assert_kind_of(Heddle::Pool::TimeoutError, error)
        assert_kind_of(Timeout::Error, error)
        assert_equal("no connection has become free in 0.02 s: all 1 are in use", error.message)
        assert_match(/ in 0 s/, go { pool.with(timeout: 0) { flunk } }.failure.message)
        job = go { pool.with(timeout: nil) { |connection| connection } }
        sleep(0.05)

        assert_equal([1, 0, 1], state(pool))
        job
      end

      assert_equal("connection 1", patient.value)
    end

    assert_equal([0, 1, 0], state(pool))
  end

  def test_the_same_connection_in_a_nested_block
    pool = make_pool(size: 2)
    other = Heddle::Pool.new(size: 1) { "other" }
    reactor do
      seen = pool.with do |a|
        other.with { |b| pool.with { |c| other.with { |d| [a, b, c, d] } } }
      end

      assert_equal(["connection 1", "other"] * 2, seen)
      assert_equal(%w[1 2], pool.with { |a| [a, go { pool.with { |b| b } }.value].map { |name| name[-1] } })
      assert_equal(%w[1 1], pool.with { |a| pool.with { |b| [a, b].map { |name| name[-1] } } })
    end
    assert_equal([[0, 2, 0], [0, 1, 0]], [state(pool), state(other)])
  end

  # The block of a run goes on where its caller is.
  def test_the_same_connection_in_a_run_in_the_block
    needs_patch(:callers_fiber)
    pool = make_pool
    pair = pool.with { |a| Heddle.run(backend: backend) { pool.with { |b| [a, b] } } }

    assert_equal(["connection 1"] * 2, pair)
    assert_equal([0, 1, 0], state(pool))
    assert_equal("connection 1", pool.with { |connection| connection })
  end

  # A fiber of its own would meet the other's transaction.
  def test_an_enumerator_has_its_own
    pool = make_pool(size: 2)
    reactor do
      inside = Enumerator.new { |to| pool.with { |connection| to << connection } }

      assert_equal(["connection 1", "connection 2"], pool.with { |connection| [connection, inside.next] })
      assert_equal("connection 1", pool.with { |connection| connection })
      assert_raises(StopIteration) { 2.times { inside.next } }
    end

    assert_equal([0, 2, 0], state(pool))
  end

  def test_what_cannot_be_made_takes_no_place
    answers = [IOError.new("refused"), "first", "second"]
    pool = make_pool(size: 1) { sleep(0.001) && answers.shift.then { |one| one.is_a?(String) ? one : raise(one) } }
    reactor do
      failing = go { pool.with { flunk } }
      waiting = go { pool.with { |connection| connection } }

      assert_equal("refused", failing.failure.message)
      assert_equal("first", waiting.value)
    end

    assert_equal([0, 1, 0], state(pool))
  end

  def test_a_cancelled_holder_gives_back_its_place
    heddle_only("cancel")
    pool = make_pool(size: 1)
    Heddle.run(backend: backend) do
      holder = Heddle.spawn { pool.with { sleep } }
      waiter = Heddle.spawn { pool.with { |connection| connection } }
      holder.cancel

      assert_equal("connection 2", waiter.value)
      assert_equal(["connection 1"], @closed, "an answer may be on its way to it")
      assert_equal([0, 1, 0], state(pool))
    end
  end

  def test_a_cancelled_waiter_leaves_the_line
    heddle_only("cancel")
    pool = make_pool(size: 1)
    order = []
    Heddle.run(backend: backend) do
      pool.with do
        tasks = Array.new(3) { |i| Heddle.spawn { pool.with { order << i } } }
        tasks[0].cancel.wait
        tasks[2].cancel.wait

        assert_equal(1, pool.waiting)
      end
    end

    assert_equal([[1], [0, 1, 0]], [order, state(pool)])
  end

  def test_a_connection_on_its_way_to_a_cancelled_waiter_goes_on
    heddle_only("cancel")
    pool = make_pool(size: 1)
    [true, false].each do |cancel_first|
      order = []
      Heddle.run(backend: backend) do
        tasks = nil
        pool.with do
          tasks = Array.new(2) { |i| Heddle.spawn { pool.with { sleep(0) && (order << i) } } }
          tasks[0].cancel if cancel_first
        end
        tasks[0].cancel
        tasks[1].wait(10)
      end

      assert_includes(order, 1)
      assert_equal([0, 0], state(pool).values_at(0, 2))
    end
  end

  def test_a_holder_that_is_cancelled_while_a_connection_is_made
    heddle_only("cancel")
    pool = make_pool(size: 1) { @made == 1 ? :made : sleep }
    Heddle.run(backend: backend) do
      maker = Heddle.spawn { pool.with { flunk } }
      waiter = Heddle.spawn { pool.with { |connection| connection } }
      @made = 1
      maker.cancel

      assert_equal(:made, waiter.value)
    end
  end

  def test_threads_and_tasks_share_it
    made = Thread::Queue.new
    pool = Heddle::Pool.new(size: 2) { (made << true) && Thread::Mutex.new }
    use = -> { 10.times { pool.with { |lock| lock.synchronize { sleep(0.0005) } } } }
    threads = Array.new(3) { Thread.new(&use) }
    reactor { 5.times { go(&use) } }
    threads.each(&:join)

    assert_operator(made.size, :<=, 2)
    assert_equal([0, made.size, 0], state(pool))
  end

  # An exception may be raised anywhere in a thread; its connection is given back.
  def test_killed_and_struck_threads
    pool = make_pool(size: 1)
    raise_into_threads { pool.with { Thread.pass } }

    assert_equal([0, 0], [pool.in_use, pool.waiting])
  end

  # Ruby looks there for exceptions that were sent to a thread; and it waits there.
  def test_an_exception_at_the_end_of_any_call
    uses = { "new" => ->(pool) { pool.with { nil } },
             "broken" => ->(pool) { pool.with { pool.discard } },
             "failing" => ->(pool) { pool.with { raise IOError } },
             "nested" => ->(pool) { pool.with { pool.with { nil } } },
             "closed" => ->(pool) { pool.with { pool.close } } }
    uses.each do |name, use|
      points = (0..).find do |point|
        pool = make_pool(check: ->(_) { true })
        pool.with { nil } unless name == "new"
        raised = raised_at(point) { use.call(pool) }
        pool.close

        assert_equal([0, 0, 0], state(pool), "#{name}, raised at #{point}")
        assert_includes([@made, @made - 1], @closed.size, "#{name}, raised at #{point}") # a new one may be lost
        !raised
      end

      assert_operator(points, :>, 5)
    end
  end

  def test_the_child_of_a_fork_has_connections_of_its_own
    heddle_only("without Heddle, once is enough")
    pool = make_pool(size: 1)
    pool.with { nil }
    reader, writer = IO.pipe
    pool.with do
      child = fork do
        writer.write(pool.with { |connection| connection }, *@closed, *state(pool))
        exit!(true)
      end
      Process.wait(child)
    end
    writer.close

    assert_equal("connection 2010", reader.read)
    assert_equal("connection 1", pool.with { |connection| connection })
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_child_that_leaves_the_block_closes_nothing_of_its_parents
    heddle_only("without Heddle, once is enough")
    out = assert_script(<<~'RUBY')
      $stdout.sync = true
      pool = Heddle::Pool.new(size: 1, close: ->(name) { puts "#{Process.pid} closes #{name}" }) { Process.pid }
      Heddle.run do
        [-> { exit }, -> { raise IOError }].each do |leave|
          pool.with do
            pid = fork
            Process.wait(pid) if pid
            $stderr.reopen(File::NULL) unless pid
            leave.call unless pid
          end
        end
        puts [pool.in_use, pool.idle, pool.with { |pid| pid == Process.pid }].join(" ")
      end
    RUBY

    assert_equal("0 1 true\n", out)
  end

  def test_inspect
    pool = make_pool(size: 2)
    pool.with { nil }

    assert_equal("#<Heddle::Pool 0 of 2 in use, 1 idle>", pool.inspect)
    assert_equal("#<Heddle::Pool 1 of 2 in use>", pool.with { pool.inspect })
  end

  def test_the_dump_names_it
    heddle_only("dump")
    text = StringIO.new
    Heddle.run(backend: backend) do
      pool = make_pool
      pool.with do
        Heddle.spawn { pool.with { nil } }
        Heddle.dump(text)
      end
    end

    assert_match(/waits for #<Heddle::Pool 1 of 1 in use, 1 waiting>/, text.string)
  end

  def test_what_is_asked_wrongly
    [0, -1, 1.5, nil].each do |size|
      assert_match(/\Asize: /, assert_raises(ArgumentError) { Heddle::Pool.new(size:) { nil } }.message)
    end
    ["1", 1i].each do |timeout|
      assert_match(/\Atimeout: /, assert_raises(ArgumentError) { make_pool(timeout:) }.message)
      assert_match(/\Atimeout: /, assert_raises(ArgumentError) { make_pool.with(timeout:) { nil } }.message)
    end
    assert_match(/\Acheck: /, assert_raises(ArgumentError) { make_pool(check: 1) }.message)
    assert_match(/\Abroken: .*"PG/, assert_raises(ArgumentError) { make_pool(broken: [IOError, "PG::Error"]) }.message)
    assert_match(/\Aclose: /, assert_raises(ArgumentError) { Heddle::Pool.new(size: 1, close: :quit) { nil } }.message)
    assert_match(/block/, assert_raises(ArgumentError) { Heddle::Pool.new(size: 1) }.message)
    assert_match(/block/, assert_raises(ArgumentError) { make_pool.with }.message)
  end

  private

  # Calls the block in a thread that gets an exception when this number of calls of Heddle has ended.
  # @return [Boolean] were there as many?
  def raised_at(point)
    raised = false
    trace = TracePoint.new(:return, :b_return) do |event|
      next unless event.path.include?("/lib/heddle/") && (point -= 1).negative? && !raised

      raised = true
      Thread.current.raise(SecurityError)
    end
    thread = Thread.new do
      Thread.current.report_on_exception = false
      trace.enable(target_thread: Thread.current) { yield }
    end
    begin
      thread.join
    rescue SecurityError, IOError
      nil
    end
    raised
  end
end
