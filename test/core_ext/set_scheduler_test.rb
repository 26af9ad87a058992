# frozen_string_literal: true

require_relative "../test_helper"

# Fiber.set_scheduler does not take the scheduler away while Heddle runs on the thread.
contract "SetScheduler" do
  heddle_only "schedulers"

  def test_it_is_refused_while_heddle_runs
    error = Heddle.run(backend: backend) do
      waiting = Heddle.spawn { sleep(0.01) && :done }
      refused = assert_raises(Heddle::Error) { Fiber.set_scheduler(nil) }

      assert_equal(:done, waiting.value)
      refused
    end

    assert_match(/Heddle runs on this thread/, error.message)
  end

  def test_it_is_ruby_s_own_elsewhere
    Heddle.run(backend: backend) { nil }
    Thread.new do
      scheduler = Heddle::Scheduler.new(backend: backend)
      Fiber.set_scheduler(scheduler)

      assert_same(scheduler, Fiber.scheduler)
      Fiber.set_scheduler(nil)

      assert_nil(Fiber.scheduler)
      assert_raises(ArgumentError) { Fiber.set_scheduler(Object.new) }
    end.join
  end

  # Runs the block in a thread that has this scheduler, outside of its `run`.
  def outside_of_run
    Thread.new do
      Fiber.set_scheduler(scheduler = Heddle::Scheduler.new(backend: backend))
      yield scheduler
    ensure
      Fiber.set_scheduler(nil)
    end.join
  end

  # As in io-event's tests of an IO that is closed.
  def test_a_fiber_that_was_entered_by_transfer_hands_control_back_when_it_waits
    needs_patch(:set_scheduler)
    outside_of_run do |scheduler|
      reader, writer = pipe
      said = []
      waits = Fiber.new { said << (reader.wait_readable && :readable) }
      closed = Fiber.new { reader.dup.tap(&:close) && (said << :closed) }
      sleeps = Fiber.new { sleep(0.01) && (said << :slept) }
      [waits, closed, sleeps].each(&:transfer)
      said << :outside
      writer.write("x")
      scheduler.run

      assert_equal(%i[closed outside], said.first(2))
      assert_equal(%i[readable slept], said.drop(2).sort) # the sleep may be over before the write
      assert_equal([false, false, false], [waits, closed, sleeps].map(&:alive?))
    end
  end

  def test_an_io_that_is_closed_outside_of_run
    needs_patch(:set_scheduler)
    outside_of_run do |scheduler|
      reader, = pipe
      ended = nil
      Fiber.new do
        reader.wait_readable
      rescue IOError => e
        ended = e.class
      end.transfer
      Fiber.new { reader.close }.transfer
      scheduler.run

      assert_equal(IOError, ended)
    end
  end

  # One that was resumed cannot: it waits where it is, and so does the fiber that has resumed it.
  def test_a_fiber_that_was_resumed_waits_where_it_is
    outside_of_run { assert_equal(:slept, Fiber.new { sleep(0.01) && :slept }.resume) }
  end
end
