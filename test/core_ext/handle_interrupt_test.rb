# frozen_string_literal: true

require_relative "../test_helper"
require "timeout"

# Thread.handle_interrupt holds back the timeouts and the cancel of a fiber.
contract "HandleInterrupt" do
  def test_a_timeout_waits_for_the_end_of_the_block
    reactor do
      reached = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.02, Timeout::Error) do
          Thread.handle_interrupt(Timeout::Error => :never) do
            sleep(0.08)
            reached = true
          end
          sleep
        end
      end

      assert(reached)
    end
  end

  def test_a_cancel_waits_for_the_end_of_the_block
    heddle_only("cancels")
    reactor do
      reached = false
      task = Heddle.spawn do
        Thread.handle_interrupt(Heddle::Cancelled => :never) { sleep(0.02) && (reached = true) }
        sleep
      end
      task.cancel

      assert_raises(Heddle::Cancelled) { task.value }
      assert(reached)
    end
  end

  def test_arguments_are_refused_as_by_ruby
    reactor do
      assert_equal(:value, Thread.handle_interrupt(IOError => :immediate) { :value })
      assert_raises(ArgumentError) { Thread.handle_interrupt(IOError => :sometimes) { nil } }
      assert_raises(ArgumentError) { Thread.handle_interrupt(IOError => :never) }
    end
  end
end
