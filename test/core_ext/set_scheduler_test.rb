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
end
