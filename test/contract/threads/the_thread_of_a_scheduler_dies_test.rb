# frozen_string_literal: true

require_relative "../../test_helper"

# The thread that runs a scheduler is raised into, killed, or simply ends: ensure blocks run, nothing is left.
contract "ThreadDeath" do
  heddle_only "schedulers"

  # Starts a thread whose fibers wait in every way, and returns it with the list of what their ensure blocks did.
  def waiting_thread(entry)
    name = backend
    events = Thread::Queue.new
    ready = Thread::Queue.new
    one, other = socket_pair
    body = lambda do
      { sleep: -> { sleep }, read: -> { one.read(1) }, queue: -> { Thread::Queue.new.pop },
        write: -> { other.write("x" * 5_000_000) }, select: -> { IO.select([one]) },
        timer: -> { sleep(30) } }.each do |key, wait|
        Fiber.schedule do
          wait.call
        ensure
          events.push(key)
        end
      end
      ready.push(true)
      sleep if entry == :run
    end
    thread = Thread.new do
      Thread.current.report_on_exception = false
      if entry == :run
        Heddle.run(backend: name, &body)
      else
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
        body.call
      end
    end
    ready.pop
    sleep(0.05)
    [thread, events]
  end

  def assert_all_ensured(events)
    seen = Array.new(events.size) { events.pop }

    assert_equal(%i[queue read select sleep timer write], seen.sort)
  end

  %i[run set_scheduler].each do |entry|
    define_method("test_raise_#{entry}") do
      thread, events = waiting_thread(entry)
      thread.raise(ZeroDivisionError, "into the thread")

      assert_raises(ZeroDivisionError) { thread.join }
      assert_all_ensured(events)
    end

    define_method("test_kill_#{entry}") do
      thread, events = waiting_thread(entry)
      thread.kill

      assert_same(thread, thread.join(60))
      assert_nil(thread.value)
      assert_all_ensured(events)
    end
  end

  # Hazard (Ruby pull request 17439): closing an IO on which a fiber of a dead thread waited aborted the process.
  def test_an_io_is_closed_after_its_waiter_has_died
    reader, writer = pipe
    name = backend
    thread = Thread.new { Heddle.run(backend: name) { reader.readpartial(1) } }
    sleep(0.05)
    thread.kill
    thread.join
    reader.close
    writer.close
  end

  def test_the_body_of_the_thread_raises
    name = backend
    ensured = false
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
      Fiber.schedule do
        sleep(0.02)
      ensure
        ensured = true
      end
      raise ZeroDivisionError
    end

    assert_raises(ZeroDivisionError) { thread.join }
    assert(ensured)
  end

  def test_the_body_of_the_thread_ends
    name = backend
    ended = []
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
      Fiber.schedule { sleep(0.02) && (ended << 1) }
      Fiber.schedule { Thread.new { sleep(0.03) }.join && (ended << 2) }
    end.join

    assert_equal([1, 2], ended.sort) # (which one ends first is up to the machine)
  end

  def test_a_fiber_that_refuses_to_die
    name = backend
    reached = false
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) do
        begin
          sleep
        rescue Exception
          nil
        end
        sleep(0.01)
        reached = true
      end
    end
    sleep(0.05)
    thread.raise(ZeroDivisionError)
    begin
      thread.join(60) or flunk("the thread did not end")
    rescue ZeroDivisionError
      nil
    end

    assert(reached) if thread.status == false # rescued by the block: its value stands
  end

  def test_many_threads_come_and_go
    name = backend
    before = descriptor_count
    20.times do
      threads = Array.new(5) { Thread.new { Heddle.run(backend: name) { sleep(0.001) } } }
      threads.each(&:join)
    end

    assert_operator(descriptor_count, :<=, before)
  end

  def test_killed_threads_leave_no_descriptor
    before = nil
    3.times do
      10.times do
        thread, = waiting_thread(:run)
        thread.kill.join
        close_kept
      end
      before ||= descriptor_count

      assert_operator(descriptor_count, :<=, before)
    end
  end

  # An exception that is sent to the thread while it is masked arrives when the mask is gone.
  def test_thread_raise_with_a_mask
    name = backend
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Thread.handle_interrupt(ZeroDivisionError => :never) do
        Heddle.run(backend: name) { 5.times { sleep(0.02) } && :whole }
      end
    end
    sleep(0.03)
    thread.raise(ZeroDivisionError)
    begin
      thread.join(60) or flunk("the thread did not end")
    rescue ZeroDivisionError
      nil
    end
  end

  # Its fibers wait in ensure blocks, and another exception is raised in the thread: they get it there, too. A fiber
  # that stayed would be collected, and the close of the IO would look at its stack.
  def test_raised_into_until_it_ends
    name = backend
    reader, writer = pipe
    left = []
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) do
        { read: -> { reader.read(1) }, sleep: -> { sleep }, pop: -> { Thread::Queue.new.pop } }.each do |key, wait|
          Fiber.schedule { waits_again(3, wait) { left << key } }
        end
        sleep
      end
    end
    raise_until_it_ends(thread)
    GC.start
    reader.close
    writer.close

    assert_equal(%i[pop read sleep], left.sort)
  end

  def test_a_fiber_that_nothing_ends
    name = backend
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) do
        Heddle.spawn do
          sleep
        rescue Exception
          retry
        end
        sleep
      end
    end
    raise_until_it_ends(thread)
    GC.start
  end

  private

  def waits_again(times, wait, &at_the_end)
    wait.call
  ensure
    times.positive? ? waits_again(times - 1, wait, &at_the_end) : yield
  end

  def raise_until_it_ends(thread)
    sleep(0.05)
    wait_until("the thread has ended") do
      thread.raise(ZeroDivisionError)
      thread.join(0.05)
    rescue ZeroDivisionError
      true
    end
  end
end
