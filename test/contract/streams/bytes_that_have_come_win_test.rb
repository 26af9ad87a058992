# frozen_string_literal: true

# bin/test: takes 5 s, 0.7 of a core

require_relative "../../test_helper"

# An exception that is raised into a task that reads costs no byte. The bytes that have come are returned, and the
# exception is raised at the next wait, or they are there for the next reader. io_uring reads them before the task runs.
contract "ReadStruck", both_ways: true do
  plain = TestSupport::Streams::PLAIN
  rounds = 80
  reads = {
    "readpartial" => ->(io) { io.readpartial(50) },
    "a_string_of_its_own" => ->(io) { io.readpartial(50, +"") },
    "gets" => ->(io) { io.gets || raise(EOFError) },
    "a_read_through_the_hook" => ->(io) { io.readline(chomp: false) }
  }
  sources = {
    "cancel" => ->(_, task) { task.cancel },
    "raise" => ->(fiber, _) { fiber.raise(StopIteration) if fiber.alive? },
    "kill" => ->(fiber, _) { fiber.kill if fiber.alive? },
    "thread" => ->(_, task) { Thread.new { task.cancel }.join }
  }

  def setup
    super
    heddle_only("exceptions are raised in tasks")
  end

  # A task that reads until an exception is raised in it, and its fiber.
  def reading(got)
    fiber = nil
    task = Heddle.spawn(isolated: true) do
      fiber = Fiber.current
      loop { got << yield } # (a StopIteration ends it)
    end
    [fiber, task]
  end

  sources.each do |name, raise_into|
    reads.each do |how, read|
      on_streams "#{how} into which comes a #{name} loses nothing", plain do |reader, writer|
        random = Random.new(Minitest.seed)
        got = +""
        sent = +""
        rounds.times do |i|
          fiber, task = reading(got) { read.call(reader) }
          random.rand(3).times { sleep(0) }
          random.rand(3).times { |k| writer.write((sent << (line = "line #{i} #{k}\n")) && line) }
          random.rand(3).times { sleep(0) }
          raise_into.call(fiber, task)
          task.wait
        end
        writer.close

        assert_equal(sent, got << reader.read)
      end
    end
  end

  on_streams "timeouts lose nothing", plain do |reader, writer|
    got = +""
    sent = +""
    job = go do
      loop do
        reader.timeout = 0.0005
        got << reader.readpartial(50)
        Timeout.timeout(0.0005) { got << reader.gets } # (nothing waits between the read and the append)
      rescue IO::TimeoutError, Timeout::Error
        nil
      end
    rescue EOFError, TypeError
      nil
    end
    rounds.times do |i|
      writer.write((sent << (line = "line #{i}\n")) && line)
      sleep(0.0003 * (i % 4))
    end
    writer.close
    job.value

    assert_equal(sent, got)
  end

  on_streams "a close leaves to a duplicate what its reader has not got", plain do |reader, writer|
    rounds.times do |i|
      io = reader.dup
      got = +""
      task = go do
        got << io.readpartial(50)
      rescue IOError
        nil
      end
      (i % 3).times { sleep(0) }
      writer.write("bytes")
      (i / 3 % 3).times { sleep(0) }
      io.close
      task.value
      got << reader.readpartial(50) while got.size < 5

      assert_equal("bytes", got)
    end
  end

  on_streams "the child of a fork takes nothing", plain do |reader, writer|
    task = go { [reader.gets, reader.gets] }
    writer.write("one\n")
    settle
    sleep(0)
    writer.write("two\n")
    Process.wait(fork { exit!(0) })

    assert_equal(%W[one\n two\n], task.value)
  end

  # (Ruby's buffer has what it has read for the first one.)
  on_streams "every task that reads hears of what one of them has read", plain do |reader, writer|
    Heddle.share_io(reader)
    tasks = Array.new(3) { go { reader.gets } }
    settle
    writer.write("1\n2\n3\n")

    assert_equal(%W[1\n 2\n 3\n], tasks.map(&:value).sort)
  end

  on_streams "who waits for readiness is told of what another has left in the buffer", plain do |reader, writer|
    Heddle.share_io(reader)
    task = go { reader.gets }
    waits = go { reader.wait_readable && reader.gets }
    settle
    writer.write("1\n2\n")

    assert_equal(%W[1\n 2\n], [task.value, waits.value].sort)
  end

  # A fiber that is raised in has not read: its bytes are there for everyone.
  {
    "readpartial" => ->(io) { io.readpartial(100) },
    "sysread" => ->(io) { io.sysread(100) },
    "recv" => ->(io) { io.recv(100) },
    "read" => ->(io) { io.read(5) },
    "read_nonblock" => ->(io) { io.read_nonblock(100) },
    "wait_readable" => ->(io) { io.wait_readable(20) && (io.getc + io.read(4)) },
    "select" => ->(io) { IO.select([io], nil, nil, 20) && io.readpartial(100) },
    "a plain thread" => ->(io) { Thread.new { io.readpartial(100) }.value }
  }.each do |name, read|
    define_method("test_#{name.tr(" ", "_")}_gets_what_a_fiber_that_is_raised_in_has_not") do
      20.times do |i|
        ends = socket_pair
        got = reactor do
          fiber = nil
          task = Heddle.spawn(isolated: true) do
            fiber = Fiber.current
            ends[0].readpartial(100)
          end
          sleep(0)
          ends[1].write("bytes")
          (i % 4).times { sleep(0) }
          fiber.raise(StopIteration) if fiber.alive?
          task.wait
          task.value
        rescue StopIteration
          read.call(ends[0])
        end

        assert_equal("bytes", got)
      end
    end
  end

  # The bytes that have come for the first task are read before those of the second, also if an exception is raised into
  # the first.
  def test_a_second_reader_comes_after_the_first
    30.times do |i|
      ends = socket_pair
      Heddle.share_io(ends[0])
      got = +""
      reactor do
        first = nil
        task = Heddle.spawn(isolated: true) do
          first = Fiber.current
          got << ends[0].gets
        end
        sleep(0)
        ends[1].write("1\n")
        (i % 3).times { sleep(0) }
        ends[1].write("2\n3\n")
        second = go { got << ends[0].gets }
        (i % 4).times { sleep(0) }
        first.raise(StopIteration) if first.alive?
        task.wait
        second.value
        ends[1].close
        got << ends[0].read
      end

      assert_equal("1\n2\n3\n", got)
    end
  end

  # (Fibers of the program's own, inside of an Enumerator, and not.)
  def test_a_fiber_that_is_forgotten
    8.times do |i|
      ends = socket_pair
      got = +""
      thread = Thread.new do
        Heddle.run do
          read = -> { got << ends[0].readpartial(100) }
          Fiber.new { i.even? ? read.call : Enumerator.new { |yielder| yielder << read.call }.next }.resume
        end
      end
      wait_until { thread.stop? }
      ends[1].write("bytes")
      sleep(0.001) if i % 4 > 1
      thread.kill.join
      GC.start
      got << ends[0].readpartial(100) while got.size < 5

      assert_equal("bytes", got)
    end
  end

  def test_the_thread_dies
    ends = socket_pair
    20.times do |i|
      got = +""
      thread = Thread.new { Heddle.run { loop { got << ends[0].readpartial(100) } } }
      wait_until { thread.stop? }
      ends[1].write("bytes")
      sleep(0.001) if i.odd?
      thread.kill.join
      got << ends[0].readpartial(100) while got.size < 5

      assert_equal("bytes", got)
    end
  end
end
