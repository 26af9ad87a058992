# frozen_string_literal: true

require_relative "../../test_helper"

# require "heddle" changes nothing for programs and threads that have no scheduler.
class PlainRubyTest < HeddleTest
  def test_fiber_raise_and_kill
    fiber = Fiber.new do
      Fiber.yield(1)
    rescue ZeroDivisionError
      :rescued
    end
    fiber.resume

    assert_equal(:rescued, fiber.raise(ZeroDivisionError))
    ensured = false
    other = Fiber.new do
      Fiber.yield
    ensure
      ensured = true
    end
    other.resume

    assert_same(other, other.kill)
    assert(ensured)
    assert_raises(FiberError) { other.raise(ZeroDivisionError) }
  end

  def test_fiber_raise_with_a_cause
    skip("Ruby 4.0 has it") unless ruby_at_least?("4.0")
    cause = KeyError.new("cause")
    outside = Fiber.new { catch_cause { Fiber.yield } }
    outside.resume

    assert_same(cause, outside.raise(IOError, "text", cause:))
    Heddle.run do
      inside = nil
      parked = Fiber.schedule { inside = catch_cause { sleep } }
      parked.raise(IOError, "text", cause:)

      assert_same(cause, inside)
    end
  end

  def test_close_of_an_io_that_a_thread_reads
    reader, = pipe
    thread = Thread.new do
      Thread.current.report_on_exception = false
      reader.readpartial(1)
    end
    wait_until { thread.status == "sleep" }
    reader.close

    error = assert_raises(IOError) { thread.join }
    assert_equal("stream closed in another thread", error.message)
  end

  def test_reopen_keeps_its_forms
    path = File.join(tempdir, "file")
    File.write(path, "text")
    reader, = pipe
    reader.reopen(path)

    assert_equal("text", reader.read)
    copy = keep($stdout.dup)
    copy.reopen(File::NULL, "w")
    copy.reopen(keep(File.open(File::NULL, "w")))
  end

  def test_blocking_calls
    assert_equal(1, Thread::Queue.new.tap { |queue| queue.push(1) }.pop)
    assert_nil(IO.select(nil, nil, nil, 0.01))
    assert_predicate(Process.wait2(spawn("true")).last, :success?)
    assert_includes(Addrinfo.getaddrinfo("localhost", 80).map(&:ip_address), "127.0.0.1")
  end

  def test_fork
    pid = fork { exit!(Fiber.scheduler.nil? ? 0 : 1) }

    assert_predicate(Process.wait2(pid).last, :success?)
  end

  def test_the_names_of_prepended_methods
    assert_equal(-1, IO.instance_method(:reopen).arity)
    assert_equal(0, IO.instance_method(:close).arity)
    assert_raises(ArgumentError) { pipe.first.close(1) }
    assert_raises(ArgumentError) { pipe.first.read_nonblock }
  end

  private

  def catch_cause
    yield
  rescue IOError => e
    e.cause
  end
end
