# frozen_string_literal: true

require_relative "../../test_helper"

# What would take the scheduler away while it runs is refused, and nothing is lost.
module SchedulerInUse
  # A scheduler of another kind.
  class Other
    %i[block unblock kernel_sleep io_wait fiber_interrupt].each { |hook| define_method(hook) { |*| nil } }
  end

  MISUSES = {
    set: -> { Fiber.set_scheduler(Other.new) },
    set_another: -> { Fiber.set_scheduler(Heddle::Scheduler.new) },
    set_the_same: -> { Fiber.set_scheduler(Fiber.scheduler) },
    unset: -> { Fiber.set_scheduler(nil) },
    run: -> { Fiber.scheduler.run },
    close: -> { Fiber.scheduler.close },
    scheduler_close: -> { Fiber.scheduler.scheduler_close }
  }.freeze

  PLACES = {
    main: ->(misuse) { misuse.call },
    after_a_wait: ->(misuse) { sleep(0.001) && misuse.call },
    task: ->(misuse) { Heddle.spawn { misuse.call }.value },
    task_after_a_wait: ->(misuse) { Heddle.spawn { sleep(0.001) && misuse.call }.value },
    fiber: ->(misuse) { Fiber.new { misuse.call }.resume },
    enumerator: ->(misuse) { Enumerator.new { |yielder| yielder << (sleep(0.001) && misuse.call) }.next },
    blocking: ->(misuse) { Fiber.blocking { misuse.call } },
    blocking_fiber: ->(misuse) { sleep(0) && Fiber.new(blocking: true) { misuse.call }.resume },
    nested: ->(misuse) { Heddle.run { misuse.call } }
  }.freeze
end

contract "SchedulerInUse" do
  heddle_only "schedulers"

  SchedulerInUse::PLACES.each do |place, body|
    SchedulerInUse::MISUSES.each do |name, misuse|
      define_method("test_#{name}_in_#{place}") { assert_refused(body, misuse) }
    end
  end

  def assert_refused(body, misuse)
    ended = []
    value = Heddle.run(backend: backend) do
      Heddle.spawn { sleep(0.01) && (ended << :task) }
      body.call(-> { assert_kind_of(Heddle::Error, refused(misuse)) })
      sleep(0.02)
      ended << :main
      :value
    end

    assert_equal([:value, %i[task main]], [value, ended])
    assert_nil(Fiber.scheduler)
  end

  def refused(misuse)
    misuse.call
    nil
  rescue StandardError => e
    e
  end

  def test_one_that_is_not_rescued_ends_the_run
    SchedulerInUse::MISUSES.each_value do |misuse|
      ended = false
      assert_raises(Heddle::Error) do
        Heddle.run(backend: backend) do
          Heddle.spawn do
            sleep
          ensure
            ended = true
          end
          misuse.call
        end
      end

      assert(ended)
      assert_nil(Fiber.scheduler)
    end
  end

  # With Fiber.set_scheduler, where nobody runs the loop before the thread ends.
  def test_under_a_plain_scheduler
    needs_whole_turns # the order of the two fibers is asserted
    SchedulerInUse::PLACES.except(:task, :task_after_a_wait, :nested).each do |place, body|
      SchedulerInUse::MISUSES.each do |name, misuse|
        assert_equal([Heddle::Error, :other], ended_under_a_plain_scheduler(body, misuse), "#{name} in #{place}")
      end
    end
  end

  def ended_under_a_plain_scheduler(body, misuse)
    ended = []
    backend = self.backend
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new(backend:))
      Fiber.schedule { body.call(-> { ended << refused(misuse).class }) }
      Fiber.schedule { sleep(0.005) && (ended << :other) }
    end.join
    ended
  end

  # The thread's own code may do all of it.
  def test_outside_of_its_fibers
    ended = []
    backend = self.backend
    Thread.new do
      scheduler = Heddle::Scheduler.new(backend:)
      Fiber.set_scheduler(scheduler)
      Fiber.new { Fiber.schedule { sleep(0.001) && (ended << 1) } && sleep(0.001) }.resume
      Fiber.new { scheduler.run }.resume
      Fiber.schedule { sleep(0.001) && (ended << 2) }
      Fiber.blocking { scheduler.run }
      Fiber.schedule { sleep(0.001) && (ended << 3) }
      Heddle.run { sleep(0.002) && scheduler.tasks.size }
      Fiber.schedule { sleep(0.001) && (ended << 4) }
      Fiber.new { scheduler.close }.resume
      Fiber.set_scheduler(nil)
    end.join

    assert_equal([1, 2, 3, 4], ended)
  end

  def refused_in_another_thread(scheduler)
    %i[run close scheduler_close].each do |name|
      error = Thread.new { refused(-> { scheduler.public_send(name) }) }.value

      assert_kind_of(Heddle::Error, error, name.to_s)
    end
  end

  def test_from_another_thread
    Heddle.run(backend: backend) do
      refused_in_another_thread(Fiber.scheduler)

      assert_equal(:on, Heddle.spawn { sleep(0.001) && :on }.value)
    end
  end

  # Its loop does not run then.
  def test_from_another_thread_under_a_plain_scheduler
    backend = self.backend
    ended = []
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new(backend:))
      Fiber.schedule { sleep(0.001) && (ended << true) }
      refused_in_another_thread(Fiber.scheduler)
    end.join

    assert_equal([true], ended)
  end
end
