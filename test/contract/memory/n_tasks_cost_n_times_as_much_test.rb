# frozen_string_literal: true

# bin/test: takes 19 s, 0.5 of a core

require "timeout"
require_relative "../../test_helper"

# What happens to n tasks at once costs n times as much as for one.
contract "Growth" do
  heddle_only "thousands of threads are too many here"

  # What the tasks do, each in a timeout of its own; all of these expire together.
  {
    "that_expire_together" => -> { sleep },
    "of_masked_tasks" => -> { Thread.handle_interrupt(Timeout::Error => :never) { 2.times { sleep(0.3) } } },
    "of_fibers_that_wait_for_others" => -> { Enumerator.new { |yielder| yielder << sleep }.next }
  }.each do |name, wait|
    define_method("test_timeouts_#{name}") do
      assert_linear(1000) do |count, clock|
        count.times do
          go do
            Timeout.timeout(0.4, Timeout::Error) { wait.call }
          rescue Timeout::Error
            sleep(0.001)
          end
        end
        compute_for(0.5)
        clock.call
      end
    end
  end

  def test_cancelled_fibers_that_wait_for_others
    assert_linear(2000) do |count, clock|
      roots = Array.new(count) { go { Enumerator.new { |yielder| yielder << sleep }.next }.fiber }
      clock.call
      roots.each { |root| Fiber.scheduler.interrupt(root, Heddle::Cancelled.new("enough")) }
    end
  end

  # Half of those that wait at a queue are cancelled, and what was meant for them goes to the others.
  def test_items_of_cancelled_fibers
    assert_linear(2000) do |count, clock|
      queue = Thread::Queue.new
      tasks = Array.new(count) { Heddle.spawn { queue.pop } }
      clock.call
      tasks.first(count / 2).each(&:cancel)
      count.times { queue << 1 }
    end
  end

  def test_readers_of_one_pipe
    assert_linear(2500) do |count, clock|
      reader, writer = pipe
      clock.call
      count.times { go { reader.readpartial(1) } }
      writer.write("x" * count)
    end
  end

  # The thread that looks for tasks that compute has nothing to do with those that wait.
  def test_timeouts_of_tasks_that_wait_do_not_keep_the_watch_busy
    reactor do
      over = false
      5000.times do |i|
        go do
          sleep(i / 5000.0)
          await_timeout(1) until over
        end
      end
      sleep(1.2)
      assert_below(0.03) { share_of_the_watch(0.8) }
    ensure
      over = true
    end
  end

  private

  # The cost of 16 times as many: a quadratic one would be 256 times as high.
  def assert_linear(count, &)
    assert_below(64) { cost(count * 4, &) / cost(count / 4, &) }
  end

  # The CPU time from when the block calls what it is given until all of its tasks have ended.
  def cost(count)
    GC.start
    GC.disable
    began = nil
    reactor { yield(count, -> { began = cpu_time }) }
    cpu_time - began
  ensure
    GC.enable
  end

  def cpu_time = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

  # They are all due when the loop comes to them.
  def compute_for(seconds)
    until_then = now + seconds
    nil while now < until_then
  end

  def await_timeout(seconds)
    Timeout.timeout(seconds) { sleep }
  rescue Timeout::Error
    nil
  end

  def share_of_the_watch(seconds)
    watch = Thread.list.find { |thread| thread.name == "heddle timeouts" }
    path = "/proc/self/task/#{watch.native_thread_id}/schedstat"
    skip("the kernel does not count a thread's time") unless File.exist?(path)
    before = Integer(File.read(path).split.first)
    sleep(seconds)
    (Integer(File.read(path).split.first) - before) / seconds / 1e9
  end
end
