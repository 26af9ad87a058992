# frozen_string_literal: true

require_relative "../../test_helper"

# Ruby keeps what is being raised in a place that a `rescue` clears. A signal's handler may rescue something at the
# moment at which the wait of a fiber ends with an exception. Without the place, Ruby crashes.
contract "HandlersRescueAmidExceptions" do
  heddle_only("what Heddle does when a wait ends with an exception")

  # The class of the exception sends the signal while it is raised. Ruby runs no handler then, but at the next call.
  define_method(:said) do |program|
    assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      class Stop < StandardError
        def backtrace
          Process.kill(:USR1, Process.pid)
          super
        end
      end
      handled = 0
      trap(:USR1) do
        raise "in the handler"
      rescue RuntimeError
        handled += 1
      end
      main = Thread.current
      #{program}
      puts handled.positive?
    RUBY
  end

  def test_a_queue_whose_item_is_passed_on
    assert_equal("from outside\ntrue\n", said(<<~RUBY))
      Heddle.run do
        queue = Thread::Queue.new
        task = Heddle.spawn do
          queue.pop
        rescue Stop => e
          puts e.message
        end
        sleep(0.001)
        queue << 1
        task.fiber.raise(Stop, "from outside")
      end
    RUBY
  end

  def test_a_lock_that_is_passed_on
    assert_equal("from outside\nlocked\ntrue\n", said(<<~RUBY))
      Heddle.run do
        lock = Thread::Mutex.new
        lock.lock
        task = Heddle.spawn do
          lock.lock
        rescue Stop => e
          puts e.message
        end
        other = Heddle.spawn { lock.synchronize { puts "locked" } }
        sleep(0.001)
        lock.unlock
        task.fiber.raise(Stop, "from outside")
        other.wait
      end
    RUBY
  end

  def test_the_last_status_of_a_task
    assert_equal("from outside\ntrue\n", said(<<~RUBY))
      begin
        Heddle.run do
          system("true")
          child = Heddle.spawn { system("false") }
          Thread.new { child.wait && main.raise(Stop, "from outside") }
          sleep
        end
      rescue Stop => e
        puts e.message
      end
    RUBY
  end

  # One handler waits at home, so the next one runs in a fiber of Heddle's own.
  def test_the_program_raises_a_cancel_in_a_second_handler
    needs_patch(:callers_fiber)

    assert_equal("mine", assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend }))
      begun = Thread::Queue.new
      actions = [-> { (begun << true) && sleep }, -> { raise Heddle::Cancelled, "mine" }]
      trap(:USR1) { actions.shift.call }
      begin
        Heddle.run do
          Heddle.spawn { true }.wait
          Thread.new do
            Process.kill(:USR1, Process.pid)
            begun.pop
            Process.kill(:USR1, Process.pid)
          end
          sleep
        end
      rescue Heddle::Cancelled => e
        print(e.message)
      end
    RUBY
  end
end
