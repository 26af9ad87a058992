# frozen_string_literal: true

require_relative "../test_helper"
require "support/hooks"

# io_wait and io_select, called as Ruby calls them.
contract "HookIOWait" do
  include TestSupport::Hooks

  heddle_only "hooks"

  # Hazard: true, nil or self in place of the events or false.
  on_streams "io_wait returns the events", TestSupport::Streams::SOCKETS do |one, other|
    both = IO::READABLE | IO::WRITABLE

    assert_equal(IO::WRITABLE, scheduler.io_wait(one, both, nil))
    assert_equal(IO::WRITABLE, scheduler.io_wait(one, IO::WRITABLE, 5))
    other.write("x")

    assert_equal(IO::READABLE, scheduler.io_wait(one, IO::READABLE, nil))
    assert_equal(both, scheduler.io_wait(one, both, 5))
    assert_equal(both, scheduler.io_wait(one, both, 0))
  end

  on_streams "io_wait returns false when the time is over", TestSupport::Streams::PLAIN do |reader, _writer|
    assert_same(false, scheduler.io_wait(reader, IO::READABLE, 0))
    assert_same(false, scheduler.io_wait(reader, IO::READABLE, 0.0))
    assert_same(false, scheduler.io_wait(reader, IO::READABLE, 0.02))
  end

  on_streams "io_wait waits", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { scheduler.io_wait(reader, IO::READABLE, nil) }
    settle

    refute_predicate(job, :finished?)
    writer.write("x")

    assert_equal(IO::READABLE, job.value)
  end

  on_streams "io_wait at the end", TestSupport::Streams::PLAIN do |reader, writer|
    writer.close

    assert_equal(IO::READABLE, scheduler.io_wait(reader, IO::READABLE, 5))
    assert_equal(IO::READABLE, scheduler.io_wait(reader, IO::READABLE, 0))
  end

  # Ruby passes nil and does not look at IO#timeout itself. From 3.4 on, who called the hook raises when it has passed.
  on_streams "io_wait minds the timeout of the IO", TestSupport::Streams::PLAIN do |reader, _writer|
    reader.timeout = 0.03
    wait = -> { scheduler.io_wait(reader, IO::READABLE, nil) }
    RUBY_VERSION < "3.4" ? assert_raises(IO::TimeoutError, &wait) : assert_same(false, wait.call)

    assert_same(false, scheduler.io_wait(reader, IO::READABLE, 0.001))
  end

  def test_io_wait_on_a_regular_file
    reactor do
      file = keep(File.open(__FILE__))

      assert_equal(IO::READABLE, scheduler.io_wait(file, IO::READABLE, nil))
    end
  end

  # A blocking operation of Ruby's may call it on the worker.
  def test_io_wait_on_a_worker_ends_with_its_fiber
    reactor do
      reader, = pipe
      one = scheduler
      job = go { one.blocking_operation_wait(-> { one.io_wait(reader, IO::READABLE, nil) }) }
      sleep(0.02)
      one.interrupt(job.fiber, ZeroDivisionError.new)

      assert_instance_of(ZeroDivisionError, job.failure)
    end
  end

  # Its system call is interrupted, by nothing that ends it.
  def test_io_wait_on_a_worker_goes_on_after_a_wakeup
    reactor do
      reader, writer = pipe
      one = scheduler
      worker = nil
      job = go do
        one.blocking_operation_wait(-> { (worker = Thread.current) && one.io_wait(reader, IO::READABLE, nil) })
      end
      sleep(0.001) until worker&.stop?
      worker.wakeup
      sleep(0.01)
      writer.write("x")

      assert_equal(IO::READABLE, job.value)
    end
  end

  def test_io_wait_from_another_thread
    reactor do
      reader, writer = pipe
      one = scheduler
      waited = Thread::Queue.new
      thread = Thread.new do
        [one.io_wait(reader, IO::READABLE, 0.02).tap { waited << true }, one.io_wait(reader, IO::READABLE, nil)]
      end
      waited.pop
      sleep(0.05)
      writer.write("x")

      assert_equal([false, IO::READABLE], thread.value)
    end
  end

  def test_io_wait_on_a_closed_io
    reactor do
      reader, = pipe
      reader.close

      assert_raises(IOError) { scheduler.io_wait(reader, IO::READABLE, 1) }
    end
  end

  def test_io_select_takes_one_to_four_arguments
    reactor do
      reader, writer = pipe
      writer.write("x")

      assert_equal([[reader], [], []], scheduler.io_select([reader]))
      assert_equal([[reader], [], []], scheduler.io_select([reader], nil))
      assert_equal([[reader], [writer], []], scheduler.io_select([reader], [writer], nil))
      assert_equal([[], [writer], []], scheduler.io_select(nil, [writer], [], 5))
    end
  end

  def test_io_select_returns_nil_when_the_time_is_over
    reactor do
      reader, = pipe

      assert_nil(scheduler.io_select([reader], nil, nil, 0))
      assert_nil(scheduler.io_select([reader], nil, nil, 0.02))
    end
  end

  # Hazard: one thread per call.
  def test_io_select_uses_no_thread
    reactor do
      readers = Array.new(20) { pipe.first }
      before = Thread.list.size
      jobs = readers.map { |reader| go { scheduler.io_select([reader], nil, nil, 0.1) } }
      settle

      assert_equal(before, Thread.list.size)
      assert_equal([nil], jobs.map(&:value).uniq)
    end
  end

  def test_io_close
    reactor do
      numbers = IO.pipe.each { |io| io.autoclose = false }.map(&:fileno)

      assert_equal([true, true], numbers.map { |fd| scheduler.io_close(fd) })
      assert_raises(Errno::EBADF) { IO.for_fd(numbers[0], autoclose: false) }
    end
  end
end
