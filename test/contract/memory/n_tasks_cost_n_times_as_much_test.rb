# frozen_string_literal: true

# bin/test: takes 45 s, 0.4 of a core

require "timeout"
require_relative "../../test_helper"
require "support/growth"

# What happens to n tasks at once costs n times as much as for one.
contract "Growth" do
  extend TestSupport::Growth

  heddle_only "thousands of threads are too many here"

  programs = {
    timeouts_that_expire_together: "expire { sleep }",
    timeouts_of_masked_tasks: "expire { Thread.handle_interrupt(Timeout::Error => :never) { 2.times { sleep(0.3) } } }",
    timeouts_of_fibers_that_wait_for_others: "expire { Enumerator.new { |yielder| yielder << sleep }.next }",
    cancelled_fibers_that_wait_for_others: <<~RUBY,
      roots = Array.new(COUNT) { start { Enumerator.new { |yielder| yielder << sleep }.next } }
      mark
      roots.each { |root| Fiber.scheduler.interrupt(root, Heddle::Cancelled.new("enough")) }
    RUBY
    # Half of the tasks that wait at a queue are cancelled, and their items go to the others.
    items_of_cancelled_fibers: <<~RUBY,
      queue = Thread::Queue.new
      tasks = Array.new(COUNT) { Heddle.spawn { queue.pop } }
      mark
      tasks.first(COUNT / 2).each(&:cancel)
      COUNT.times { queue << 1 }
    RUBY
    readers_of_one_pipe: <<~RUBY
      reader, writer = IO.pipe
      mark
      COUNT.times { start { reader.readpartial(1) } }
      writer.write("x" * COUNT)
    RUBY
  }

  prelude = <<~RUBY
    require "timeout"

    def start
      Fiber.schedule do
        yield
      rescue Heddle::Cancelled
        nil
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # All are due at the same time, and none before all have begun. On a busy machine they need more time to begin.
    def expire(time = 0.3 + 0.002 * COUNT, &block)
      due = now + time
      left = COUNT
      COUNT.times { Fiber.schedule { wait_until(due, &block) && left -= 1 } }
      if now < due
        Fiber.blocking { sleep([due - now, 0].max + 0.1) }
        return mark
      end
      sleep(0.01) until left.zero?
      expire(time * 4, &block)
    end

    def wait_until(due)
      Timeout.timeout([due - now, 0.001].max, Timeout::Error) { yield }
    rescue Timeout::Error
      sleep(0.001)
    end
  RUBY

  costs_grow_with_the_number(programs:, prelude:, few: 100, many: 800)

  # The thread that looks for tasks that compute has nothing to do with tasks that wait.
  def test_timeouts_of_tasks_that_wait_do_not_keep_the_watch_busy
    reactor do
      begun = 0
      over = false
      1000.times do
        go { (begun += 1) && await_timeout(0.2) until over }
      end
      wakeups = wakeups_of_the_watch
      before = begun
      sleep(0.01) until begun > before + 5000

      assert_operator(wakeups_of_the_watch - wakeups, :<, 500)
    ensure
      over = true
    end
  end

  private

  def await_timeout(seconds)
    Timeout.timeout(seconds) { sleep }
  rescue Timeout::Error
    nil
  end

  # How often it has waited: once for each time that it was awake.
  def wakeups_of_the_watch
    watch = Thread.list.find { |thread| thread.name == "heddle timeouts" }
    Integer(File.read("/proc/self/task/#{watch.native_thread_id}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1])
  end
end
