# frozen_string_literal: true

require_relative "../../test_helper"

# 10,000 fibers asleep at once: all of them wake, none early.
contract "Sleepers" do
  def test_ten_thousand_sleepers
    heddle_only("10,000 threads are too many here")
    early = 0
    woken = 0
    reactor do
      10_000.times do |i|
        duration = 0.05 + ((i % 100) / 1000.0)
        Fiber.schedule do
          started = now
          sleep(duration)
          early += 1 if now - started < duration
          woken += 1
        end
      end
    end

    assert_equal(10_000, woken)
    assert_equal(0, early)
  end

  def test_ten_thousand_sleep_at_the_same_moment
    heddle_only("10,000 threads are too many here")
    woken = 0
    reactor { 10_000.times { Fiber.schedule { sleep(0.2) && (woken += 1) } } }

    assert_equal(10_000, woken)
  end
end
