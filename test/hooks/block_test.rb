# frozen_string_literal: true

require_relative "../test_helper"
require "support/hooks"

# block, unblock, kernel_sleep, yield and fiber, called as Ruby calls them.
contract "HookBlock" do
  include TestSupport::Hooks

  heddle_only "hooks"

  def test_block_until_unblock
    reactor do
      job = go { scheduler.block(:blocker, nil) }
      settle

      refute_predicate(job, :finished?)
      scheduler.unblock(:blocker, job.fiber)

      assert(job.value)
    end
  end

  def test_block_with_a_timeout
    reactor do
      taken = elapsed { refute(scheduler.block(:blocker, 0.05)) }

      assert_operator(taken, :>=, 0.05)
      refute(scheduler.block(:blocker, 0))
    end
  end

  def test_block_is_never_early
    reactor do
      jobs = Array.new(200) do |i|
        duration = 0.01 + (i * 0.0003)
        go { elapsed { scheduler.block(:blocker, duration) } - duration }
      end

      assert_operator(jobs.map(&:value).min, :>=, 0)
    end
  end

  def test_unblock_from_another_thread
    reactor do
      job = go { scheduler.block(:blocker, nil) }
      one = scheduler
      Thread.new { sleep(0.02) && one.unblock(:blocker, job.fiber) }

      assert(job.value)
    end
  end

  def test_unblock_before_block_is_no_promise
    reactor do
      scheduler.unblock(:blocker, Fiber.current)

      refute(scheduler.block(:blocker, 0.02))
    end
  end

  # ConditionVariable#wait waits in kernel_sleep.
  def test_unblock_ends_kernel_sleep
    reactor do
      job = go { scheduler.kernel_sleep(nil) }
      settle
      scheduler.unblock(:blocker, job.fiber)
      job.value
      other = go { scheduler.kernel_sleep }
      settle
      scheduler.unblock(:blocker, other.fiber)
      other.value
    end
  end

  def test_unblock_does_not_end_a_wait_for_an_io
    reactor do
      reader, writer = pipe
      input, feed = pipe
      jobs = [go { reader.readpartial(1) }, go { IO.select([reader]) && :selected },
              go { Process.wait(spawn("read x; true", in: input)) && :waited }]
      settle
      jobs.each { |job| 3.times { scheduler.unblock(:blocker, job.fiber) } }
      settle

      assert(jobs.none?(&:finished?))
      writer.write("xy")
      feed.puts

      assert_equal(["x", :selected, :waited], jobs.map(&:value))
    end
  end

  def test_kernel_sleep
    reactor do
      assert_raises(ArgumentError) { scheduler.kernel_sleep(-1) }
      assert_raises(TypeError) { scheduler.kernel_sleep("x") }
      scheduler.kernel_sleep(0)
      scheduler.kernel_sleep(0.001)
      scheduler.kernel_sleep(Rational(1, 1000))
    end
  end

  def test_yield_lets_others_run
    reactor do
      order = []
      job = go { 3.times { |i| (order << i) && scheduler.yield } }
      3.times { |i| (order << (i + 10)) && scheduler.yield }
      job.value

      assert_equal([0, 10, 1, 11, 2, 12], order)
    end
  end

  def test_fiber
    reactor do
      order = []
      fiber = scheduler.fiber { (order << 1) && sleep(0.001) && (order << 3) }
      order << 2

      assert_instance_of(Fiber, fiber)
      wait_until { order.size == 3 }

      assert_equal([1, 2, 3], order)
      assert_raises(ArgumentError, LocalJumpError) { scheduler.fiber }
    end
  end

  def test_hooks_keep_errno
    reactor do
      job = go { scheduler.block(:blocker, nil) }
      begin
        File.open("/no/such/file")
      rescue SystemCallError
        scheduler.unblock(:blocker, job.fiber)

        assert_instance_of(Errno::ENOENT, $!)
      end
    end
  end
end
