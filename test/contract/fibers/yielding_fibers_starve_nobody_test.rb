# frozen_string_literal: true

# bin/test: takes 7 s, 0.7 of a core

require_relative "../../test_helper"

# A fiber that only yields does not starve the others, nor timers, nor I/O.
contract "Fairness" do
  heddle_only "threads are switched by time"

  # Runs the block while fibers are ready all the time; fails if it does not end.
  def with_yielding_fibers(count = 3)
    reactor do
      running = true
      count.times { go { sleep(0) while running } }
      yield
    ensure
      running = false
    end
  end

  def test_timers_fire
    with_yielding_fibers { 5.times { sleep(0.01) } }
  end

  # Whose time has come does not wait until all others have run.
  def test_timers_are_on_time
    needs_whole_turns
    reactor do
      running = true
      begun = []
      30.times do
        go do
          while running
            begun << (started = now)
            nil until now > started + 2e-5
            sleep(0)
          end
        end
      end
      late = Array.new(20) do
        begun.clear
        due = now + 0.002
        sleep(0.002)
        begun.count { |time| time > due }
      end
      running = false

      assert_operator(late.sort[10], :<, 10, late.inspect)
    end
  end

  def test_io_is_seen
    with_yielding_fibers do
      one, other = socket_pair
      echo = go { 50.times { other.write(other.readpartial(10)) } }
      50.times { one.write("x") && one.readpartial(10) }
      echo.value
    end
  end

  def test_other_threads_are_heard
    with_yielding_fibers do
      queue = Thread::Queue.new
      thread = Thread.new { 5.times { sleep(0.005) && queue.push(1) } }
      5.times { queue.pop }
      thread.join
    end
  end

  def test_other_threads_run
    count = 0
    thread = Thread.new { loop { (count += 1) && sleep(0.001) } }
    with_yielding_fibers { wait_until { count > 5 } }
  ensure
    thread.kill.join
  end

  def test_children_are_seen
    with_yielding_fibers { assert_predicate(Process.wait2(spawn("true")).last, :success?) }
  end

  def test_timeouts_fire
    with_yielding_fibers do
      queue = Thread::Queue.new

      assert_nil(queue.pop(timeout: 0.03))
      reader, = pipe

      assert_nil(reader.wait_readable(0.03))
      assert_nil(IO.select([reader], nil, nil, 0.03))
    end
  end

  def test_work_is_offloaded
    with_yielding_fibers do
      assert_includes(Addrinfo.getaddrinfo("localhost", 80).map(&:ip_address), "127.0.0.1")
    end
  end

  # Pairs of fibers that keep each other ready through a queue, without ever calling sleep.
  def test_a_queue_ping_pong_starves_nobody
    reactor do
      running = true
      one = Thread::Queue.new
      two = Thread::Queue.new
      go { (two.push(1) while running && one.pop) || two.push(nil) }
      go { (one.push(1) while running && two.pop) || one.push(nil) }
      one.push(1)
      reader, writer = pipe
      go { sleep(0.02) && writer.write("x") }

      assert_equal("x", reader.readpartial(1))
      running = false
    end
  end

  # A pair that echoes through sockets without ever finding them empty.
  def test_io_that_is_always_ready_starves_nobody
    reactor do
      running = true
      zeros = keep(File.open("/dev/zero"))
      reader, writer = pipe
      go do
        writer.write("x" * 4096) while running
      rescue Errno::EPIPE
        nil
      end
      go { (reader.readpartial(4096) while running) || reader.close }
      go { zeros.readpartial(4096) && sleep(0) while running }
      5.times { sleep(0.01) }
      running = false
    end
  end

  def test_sleep_zero_takes_turns
    needs_whole_turns
    reactor do
      turns = Array.new(5, 0)
      jobs = Array.new(5) do |i|
        go do
          100.times do
            turns[i] += 1
            sleep(0)

            assert_operator(turns.max - turns.min, :<=, 1)
          end
        end
      end
      jobs.each(&:value)

      assert_equal([100] * 5, turns)
    end
  end

  # Such a read never waits: the kernel has the file in memory.
  def test_a_loop_over_a_file
    heddle_only("the kernel interrupts them")
    Dir.mktmpdir do |folder|
      path = File.join(folder, "file")
      File.binwrite(path, "x" * 65_536)
      turns = 0
      reactor do
        File.open(path, "rb") do |file|
          other = go { loop { sleep(0.001) && turns += 1 } }
          started = now
          file.pread(65_536, 0) until turns > 5 || now > started + 100
          other.fiber.raise(StopIteration)
        end
      end

      assert_operator(turns, :>, 5)
    end
  end
end
