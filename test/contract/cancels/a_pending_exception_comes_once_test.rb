# frozen_string_literal: true

require_relative "../../test_helper"

# An exception for a fiber that another one has resumed, in which it waits: it is raised there, once, or withdrawn.
contract "PendingOnce" do
  heddle_only "Scheduler#interrupt"

  # Runs the block in a fiber that a task resumes. It is given the fiber, what has happened so far, and the root.
  def in_a_resumed_fiber
    log = []
    reactor do
      go do
        root = Fiber.current
        Fiber.new(blocking: false) { yield(Fiber.current, log, root) }.resume
      end.value
    end
    log
  end

  def scheduler = Fiber.scheduler

  # A mask of the fiber that has resumed it does not turn a pending exception into the end of a sleep.
  def test_behind_the_mask_of_another
    log = []
    reactor do
      go do
        Thread.handle_interrupt(IOError => :never) do
          Fiber.new(blocking: false) { sleep_until_struck(Fiber.current, log) }.resume
        end
      end.value
    end

    assert_equal([:raised], log)
  end

  def test_an_unblock_overtakes_it
    log = in_a_resumed_fiber do |fiber, all, _root|
      go { overtake(fiber, IOError.new("late")) }
      all << :unblocked if sleep(20)
      begin
        sleep(0.05)
        all << :not_struck
      rescue IOError
        all << :raised
      end
    end

    assert_equal(%i[unblocked raised], log)
  end

  def test_an_unblock_overtakes_it_and_it_is_withdrawn
    log = in_a_resumed_fiber do |fiber, all, root|
      late = IOError.new("late")
      go { overtake(fiber, late) }
      all << :unblocked if sleep(20)
      [fiber, root].each { |one| scheduler.withdraw(one, late) }
      sleep(0.05)
      all << :not_struck
    end

    assert_equal(%i[unblocked not_struck], log)
  end

  private

  # An unblock comes when the exception is on its way.
  def overtake(fiber, exception)
    sleep(0.02)
    scheduler.interrupt(fiber, exception)
    scheduler.unblock(:nobody, fiber)
  end

  def sleep_until_struck(fiber, log)
    go { sleep(0.02) && scheduler.interrupt(fiber, IOError.new("now")) }
    sleep(10)
    log << :slept
  rescue IOError
    log << :raised
  end
end
