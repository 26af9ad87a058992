# frozen_string_literal: true

require "timeout"
require_relative "../test_helper"
require "support/hooks"

# process_wait, timeout_after, address_resolve, blocking_operation_wait and fiber_interrupt, called directly.
contract "HookOther" do
  include TestSupport::Hooks

  heddle_only "hooks"

  def test_process_wait
    reactor do
      pid = spawn("exit 3")
      status = scheduler.process_wait(pid, 0)

      assert_instance_of(Process::Status, status)
      assert_equal([pid, 3], [status.pid, status.exitstatus])
      pid = spawn("sleep 0.1")

      assert_nil(scheduler.process_wait(pid, Process::WNOHANG))
      assert_equal(pid, scheduler.process_wait(-1, 0).pid)
    end
  end

  def test_timeout_after
    reactor do
      assert_equal(:value, scheduler.timeout_after(5, Timeout::Error, "message") { :value })
      assert_equal(5, scheduler.timeout_after(5, Timeout::Error, "message") { |duration| duration })
      error = assert_raises(ZeroDivisionError) { scheduler.timeout_after(0.01, ZeroDivisionError, "message") { sleep } }

      assert_equal("message", error.message)
      assert_raises(Timeout::Error) { scheduler.timeout_after(0.01, Timeout::Error) { sleep } }
      assert_raises(Timeout::Error) { scheduler.timeout_after(0.01) { sleep } }
      assert_raises(IOError) { scheduler.timeout_after(0.01, IOError.new("an object")) { sleep } }
    end
  end

  def test_timeout_after_nested
    reactor do
      seen = []
      assert_raises(ZeroDivisionError) do
        scheduler.timeout_after(0.02, ZeroDivisionError, "outer") do
          scheduler.timeout_after(10, IOError, "inner") { sleep }
        ensure
          seen << $!.message
        end
      end

      assert_equal(["outer"], seen)
    end
  end

  def test_address_resolve
    reactor do
      assert_includes(scheduler.address_resolve("localhost"), "127.0.0.1")
      assert_equal(["127.0.0.1"], scheduler.address_resolve("127.0.0.1").uniq)
      assert_nil(scheduler.address_resolve("no-such-name.invalid"))
      assert_raises(TypeError) { scheduler.address_resolve(nil) }
      assert_raises(ArgumentError) { scheduler.address_resolve("a\0b") }
    end
  end

  # Link-local addresses keep their zone.
  def test_address_resolve_of_a_zone
    reactor do
      addresses = scheduler.address_resolve("fe80::1%lo")
      skip("no such zone here") unless addresses

      assert_includes(addresses, "fe80::1%lo")
    end
  end

  def test_blocking_operation_wait
    reactor do
      thread = nil
      value = assert_others_run do
        scheduler.blocking_operation_wait(-> { (thread = Thread.current) && Kernel.sleep(0.15) && :done })
      end

      refute_same(Thread.current, thread)
      assert(value == :done || value.nil? || value == true)
    end
  end

  # The operation may work on memory of the fiber, which must not go on before it has ended.
  def test_a_blocking_operation_outlasts_many_exceptions
    events = []
    thread = Thread.new do
      Thread.current.report_on_exception = false
      reactor do
        operation = lambda do
          Thread.handle_interrupt(Exception => :never) do
            12.times { thread.raise(ZeroDivisionError) }
            sleep(0.02)
            events << :operation_ended
          end
        end
        scheduler.blocking_operation_wait(operation)
      ensure
        events << :fiber_ended
      end
    end

    assert_raises(ZeroDivisionError) { thread.value }
    assert_equal(%i[operation_ended fiber_ended], events)
  end

  def test_fiber_interrupt
    reactor do
      reader, writer = pipe
      job = go { reader.readpartial(1) }
      settle
      scheduler.fiber_interrupt(job.fiber, IOError.new("stream closed in another thread"))

      assert_instance_of(IOError, job.failure)
      assert_equal("stream closed in another thread", job.failure.message)
      writer.write("x")

      assert_equal("x", reader.readpartial(1))
    end
  end

  # The exception that Ruby passes is frozen and shared.
  def test_fiber_interrupt_with_a_shared_exception
    reactor do
      shared = IOError.new("stream closed in another thread").freeze
      jobs = Array.new(3) { go { pipe.first.readpartial(1) } }
      settle
      jobs.each { |job| scheduler.fiber_interrupt(job.fiber, shared) }

      assert_equal([IOError] * 3, jobs.map { |job| job.failure.class })
    end
  end

  def test_fiber_interrupt_from_another_thread
    reactor do
      job = go { pipe.first.readpartial(1) }
      settle
      one = scheduler
      Thread.new { one.fiber_interrupt(job.fiber, IOError.new("closed")) }.join

      assert_instance_of(IOError, job.failure)
    end
  end

  # Ruby bug 21918: the error of a close that came together with the data landed in a later operation.
  def test_fiber_interrupt_of_a_finished_operation
    reactor do
      queue = Thread::Queue.new
      reader, writer = pipe
      job = go { [reader.readpartial(1), queue.pop(timeout: 5)] }
      settle
      writer.write("x")
      wait_until { queue.num_waiting == 1 }
      ended = go { nil }
      scheduler.fiber_interrupt(ended.fiber, IOError.new("closed"))
      queue.push(:item)

      assert_equal(["x", :item], job.value)
    end
  end

  # The operation has ended, and what the fiber waits for now is something else.
  def test_fiber_interrupt_of_a_fiber_that_waits_for_something_else
    reactor do
      queue = Thread::Queue.new
      job = go { queue.pop(timeout: 5) }
      settle
      scheduler.fiber_interrupt(job.fiber, IOError.new("closed"))
      queue.push(:item)

      assert_equal(:item, job.value)
    end
  end

  # (The program's own fiber turns the loop, so the signal is handled on top of its wait.)
  def test_fiber_interrupt_while_a_signal_handler_waits_in_the_fiber
    said = assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      Fiber.set_scheduler(Heddle::Scheduler.new)
      scheduler = Fiber.scheduler
      reader, _writer = IO.pipe
      fiber = nil
      trap(:USR1) do
        Thread.new { scheduler.fiber_interrupt(fiber, IOError.new("closed")) }
        sleep(0.05)
        puts "handled"
      end
      Thread.new do
        sleep(0.001) until scheduler.size == 1
        Process.kill(:USR1, Process.pid)
      end
      fiber = Fiber.new(blocking: false) do
        reader.read(1)
      rescue IOError => e
        puts e.message
      end
      fiber.resume
    RUBY

    assert_equal("handled\nclosed\n", said)
  end
end
