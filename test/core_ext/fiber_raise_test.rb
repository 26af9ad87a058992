# frozen_string_literal: true

require_relative "../test_helper"

# Fiber#raise and Fiber#kill into a fiber that Heddle parked: the caller goes on afterwards.
contract "FiberRaisePatch" do
  heddle_only "fibers"

  { "raise" => ->(fiber) { fiber.raise(ZeroDivisionError) }, "kill" => ->(fiber) { fiber.kill } }.each do |name, source|
    define_method("test_the_caller_goes_on_after_#{name}") do
      reactor do
        ended = false
        job = go do
          sleep
        ensure
          ended = true
        end
        source.call(job.fiber)

        assert(ended)
        assert_instance_of(ZeroDivisionError, job.failure) if name == "raise"
      end
    end
  end

  def test_kill_takes_no_argument
    reactor do
      job = go { sleep(0.01) }

      assert_raises(ArgumentError) { job.fiber.kill(1) }
    end
  end
end
