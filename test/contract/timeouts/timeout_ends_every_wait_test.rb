# frozen_string_literal: true

require "timeout"
require_relative "../../test_helper"

# Timeout.timeout around everything that waits.
contract "Timeout" do
  def test_what_is_no_time
    nothing = Object.new.tap { |object| object.define_singleton_method(:zero?) { false } }
    plain = assert_raises(StandardError) { Timeout.timeout(nothing) { nil } }

    reactor { assert_raises(plain.class) { Timeout.timeout(nothing) { nil } } }
  end

  def test_the_value_of_the_block
    reactor do
      assert_equal(:value, Timeout.timeout(5) { :value })
      assert_equal(:value, Timeout.timeout(5) { sleep(0.01) && :value })
      assert_equal(:value, Timeout.timeout(nil) { :value })
      assert_equal(:value, Timeout.timeout(0) { sleep(0.01) && :value })
    end
  end

  def test_the_block_is_given_the_seconds
    reactor do
      assert_equal(5, Timeout.timeout(5) { |seconds| seconds })
      assert_in_delta(2.5, Timeout.timeout(2.5) { |seconds| seconds })
    end
  end

  def test_the_error
    reactor do
      error = assert_raises(Timeout::Error) { Timeout.timeout(0.05) { sleep } }

      assert_instance_of(Timeout::Error, error)
      assert_equal("execution expired", error.message)
      assert_includes(error.backtrace.join("\n"), __FILE__)
    end
  end

  def test_never_early
    reactor do
      taken = elapsed { assert_raises(Timeout::Error) { Timeout.timeout(0.1) { sleep } } }

      assert_operator(taken, :>=, 0.1)
      assert_operator(taken, :<, 25)
    end
  end

  def test_class_and_message
    reactor do
      error = assert_raises(ZeroDivisionError) { Timeout.timeout(0.02, ZeroDivisionError) { sleep } }

      assert_equal("execution expired", error.message)
      error = assert_raises(ZeroDivisionError) { Timeout.timeout(0.02, ZeroDivisionError, "too slow") { sleep } }

      assert_equal("too slow", error.message)
      error = assert_raises(Timeout::Error) { Timeout.timeout(0.02, nil, "too slow") { sleep } }

      assert_equal("too slow", error.message)
    end
  end

  def cause_inside_a_rescue(*arguments)
    raise "before"
  rescue RuntimeError
    assert_raises(Timeout::Error, ZeroDivisionError) { Timeout.timeout(0.02, *arguments) { sleep(5) } }.cause
  end

  def test_the_cause_is_not_that_of_a_rescue_around_it
    reactor do
      assert_instance_of(Timeout::ExitException, cause_inside_a_rescue)
      assert_nil(cause_inside_a_rescue(ZeroDivisionError))
    end
  end

  def test_a_rational_without_a_class_is_not_swallowed
    reactor do
      assert_raises(Timeout::Error) do
        Timeout.timeout(1r / 50) do
          sleep
        rescue StandardError
          flunk("rescued inside")
        end
      end
    end
  end

  def test_negative_seconds
    skip("Ruby checks since timeout 0.4.4") if Gem::Version.new(Timeout::VERSION) < Gem::Version.new("0.4.4")

    reactor { assert_raises(ArgumentError) { Timeout.timeout(-1) { nil } } }
  end

  # The block is left: it cannot go on after a rescue of its own, unless a class was given.
  def test_without_a_class_rescue_does_not_swallow_it
    reactor do
      swallowed = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.03) do
          begin
            sleep
          rescue StandardError
            swallowed = true
          end
          sleep(1)
        end
      end

      refute(swallowed)
    end
  end

  def test_with_a_class_the_block_may_rescue_it
    reactor do
      value = Timeout.timeout(0.03, ZeroDivisionError) do
        sleep
      rescue ZeroDivisionError
        :rescued
      end

      assert_equal(:rescued, value)
    end
  end

  def test_ensure_runs
    reactor do
      ensured = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.02) do
          sleep
        ensure
          ensured = true
        end
      end

      assert(ensured)
    end
  end

  def test_nested_the_inner_one_fires
    reactor do
      value = Timeout.timeout(20) do
        assert_raises(Timeout::Error) { Timeout.timeout(0.02) { sleep } }
        :outer
      end

      assert_equal(:outer, value)
    end
  end

  { "" => [ZeroDivisionError], "_without_classes" => [] }.each do |name, given|
    define_method("test_nested#{name}_the_outer_one_fires") do
      reactor do
        inner = false
        assert_raises(given.first || Timeout::Error) do
          Timeout.timeout(0.02, *given) do
            Timeout.timeout(20) { sleep }
          rescue Timeout::Error
            inner = true
          end
        end

        refute(inner)
      end
    end
  end

  # The waits that a timeout must end, each in a block that gets a pair of sockets.
  {
    "sleep" => ->(_) { sleep },
    "a_long_sleep" => ->(_) { sleep(20) },
    "queue_pop" => ->(_) { Thread::Queue.new.pop },
    "queue_pop_with_a_timeout" => ->(_) { Thread::Queue.new.pop(timeout: 20) },
    "sized_queue_push" => ->(_) { Thread::SizedQueue.new(1).then { |queue| 2.times { queue.push(1) } } },
    "condition_wait" => lambda do |_|
      mutex = Thread::Mutex.new
      mutex.synchronize { Thread::ConditionVariable.new.wait(mutex) }
    end,
    "read" => ->(io) { io.read(1) },
    "gets" => ->(io) { io.gets },
    "wait_readable" => ->(io) { io.wait_readable },
    "select" => ->(io) { IO.select([io]) },
    "recv" => ->(io) { io.recv(1) },
    "write" => ->(io) { io.write("x" * 5_000_000) },
    "accept" => ->(_) { TCPServer.open("127.0.0.1", 0, &:accept) },
    "process_wait" => ->(_) { system("exec sleep 100") }
  }.each do |name, wait|
    define_method("test_around_#{name}") do
      reactor do
        one, = socket_pair
        taken = elapsed { assert_raises(Timeout::Error) { Timeout.timeout(0.05) { wait.call(one) } } }

        assert_operator(taken, :>=, 0.05)
        assert_operator(taken, :<, 25)
        kill_children # that of system
      end
    end
  end

  def test_around_a_lock
    reactor do
      mutex = Thread::Mutex.new
      release = Thread::Queue.new
      holder = go { mutex.synchronize { release.pop } }
      settle
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { mutex.lock } }
      release.push(1)
      holder.value

      assert_equal(:mine, mutex.synchronize { :mine })
    end
  end

  def test_around_a_join
    reactor do
      stop = Thread::Queue.new
      thread = Thread.new { stop.pop }
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { thread.join } }
      stop.push(1)

      assert_same(thread, thread.join(20))
    end
  end

  # Hazard: a later operation is hit by the timer of one that is over.
  def test_a_timeout_that_did_not_fire_leaves_nothing
    reactor do
      50.times do
        Timeout.timeout(0.05) { sleep(0) }
      rescue Timeout::Error
        nil # a busy machine
      end
      reader, writer = pipe
      job = go { reader.readpartial(1) }
      sleep(0.15)

      refute_predicate(job, :finished?)
      writer.write("x")

      assert_equal("x", job.value)
    end
  end

  def test_the_io_is_usable_afterwards
    reactor do
      one, other = socket_pair
      assert_raises(Timeout::Error) { Timeout.timeout(0.03) { one.gets } }
      other.write("line\n")

      assert_equal("line\n", one.gets)
      assert_raises(Timeout::Error) { Timeout.timeout(0.03) { one.read(1) } }
      one.write("x")

      assert_equal("x", other.read(1))
    end
  end

  def test_a_drip_is_bounded_as_a_whole
    reactor do
      one, other = socket_pair
      dripping = true
      drip = go { other.write(".") && sleep(0.02) while dripping }
      assert_raises(Timeout::Error) { Timeout.timeout(0.15) { one.gets } }
      dripping = false
      drip.value
    end
  end

  def test_many_at_once
    reactor do
      jobs = Array.new(100) { |i| go { Timeout.timeout(0.05 + (i * 0.001)) { sleep } } }

      assert_equal([Timeout::Error], jobs.map { |job| job.failure.class }.uniq)
    end
  end

  # The time of a block is over while the fiber that has begun it waits for something else; another one leaves the block
  # before it hears of that.
  def test_a_sleep_and_a_block_that_another_fiber_leaves_in_time
    left_in_time(-> { elapsed { sleep(0.5) } }) { |slept| assert_operator(slept.value, :>=, 0.49) }
  end

  def test_a_read_and_a_block_that_another_fiber_leaves_in_time
    reader, writer = pipe
    left_in_time(-> { reader.read(1) }) do |read|
      writer.write("x")

      assert_equal("x", read.value)
    end
  end

  def test_a_closed_reader_and_a_block_that_another_fiber_leaves_in_time
    reader, = pipe

    left_in_time(-> { reader.read(1) }, -> { reader.close }) { |read| assert_instance_of(IOError, read.failure) }
  end

  # Hazard: the scheduler's own rescue of Timeout::Error swallows the user's.
  def test_the_users_own_timeout_error_passes
    reactor do
      error = assert_raises(Timeout::Error) do
        Timeout.timeout(20) { raise Timeout::Error, "my own" }
      end

      assert_equal("my own", error.message)
      assert_raises(Timeout::Error) { raise Timeout::Error, "outside" }
    end
  end

  def test_a_fiber_started_inside_goes_on
    heddle_only("Fiber.schedule")
    reactor do
      job = nil
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.03) do
          job = go { sleep(0.1) && :done }
          sleep
        end
      end

      assert_equal(:done, job.value)
    end
  end

  private

  def left_in_time(waits, meanwhile = -> {})
    heddle_only("a thread is no fiber")

    reactor do
      numbers = Enumerator.new { |yielder| Timeout.timeout(0.3) { yielder << 1 } && (yielder << 2) }
      queue = Thread::Queue.new
      job = go { numbers.next && waits.call }
      other = go { queue.pop && numbers.next.tap { meanwhile.call } }
      go { Heddle.without_time_slices { compute(0.35) && (queue << 1) } }

      assert_equal(2, other.value)
      yield job
    end
  end

  def compute(seconds)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    true until Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    :computed
  end
end
