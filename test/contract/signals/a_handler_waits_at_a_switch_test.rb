# frozen_string_literal: true

# bin/test: takes 6 s, 0.8 of a core

require_relative "../../test_helper"

# Ruby runs the handlers of signals at the end of a switch of fibers, before it takes the value that was passed. A
# handler that waits there switches, too.
contract "HandlerAtASwitch" do
  heddle_only "scripts"

  # Another process sends signals until it is killed, or this one has ended. A thread would send fewer.
  def sender
    <<~RUBY
      sender = fork do
        Signal.trap(:USR1, "IGNORE")
        loop { Process.kill(:USR1, Process.ppid) && sleep(0.0001) && Process.ppid != 1 || exit!(true) }
      end
    RUBY
  end

  { "sleeps" => "sleep(0.0001)", "starts_a_task" => "Heddle.spawn { sleep(0.0001) }.wait" }.each do |name, action|
    { "block" => "work.call", "task" => "Heddle.spawn { work.call }.wait" }.each do |where, start|
      define_method("test_an_enumerator_in_a_#{where}_while_a_handler_#{name}") do
        needs_patch(:callers_fiber)

        assert_equal("[1]", assert_script(<<~RUBY))
          handled = 0
          values = []
          trap(:USR1) { (#{action}; handled += 1) if Fiber.current_scheduler }
          #{sender}
          Heddle.run(backend: #{backend.inspect}) do
            work = lambda do
              numbers = Enumerator.new { |to| loop { to << 1 } }
              values |= [numbers.next] until handled >= 500
            end
            #{start}
            Process.kill(:KILL, sender)
          end
          Process.wait(sender)
          print(values)
        RUBY
      end
    end
  end

  # An exception on its way to a fiber is passed like a value.
  def test_fiber_raise_while_a_handler_sleeps
    needs_patch(:callers_fiber)

    assert_equal("raised", assert_script(<<~RUBY))
      handled = 0
      trap(:USR1) { (sleep(0.0001); handled += 1) if Fiber.current_scheduler }
      #{sender}
      Heddle.run(backend: #{backend.inspect}) do
        until handled >= 500
          fiber = Fiber.new { Fiber.yield while true }
          fiber.resume
          begin
            fiber.raise(IOError, "for the fiber")
            abort("nothing was raised")
          rescue IOError
            nil
          end
        end
        Process.kill(:KILL, sender)
      end
      Process.wait(sender)
      print("raised")
    RUBY
  end

  # The second handler waits in a fiber of Heddle's own, and the end of the run cancels it.
  def test_the_cancel_of_a_handler_does_not_replace_the_error_of_the_run
    needs_patch(:callers_fiber)

    assert_equal("from outside", assert_script(<<~RUBY))
      begun = Thread::Queue.new
      trap(:USR1) { (begun << true) && sleep }
      main = Thread.current
      begin
        Heddle.run(backend: #{backend.inspect}) do
          Heddle.spawn { true }.wait
          Thread.new do
            2.times { Process.kill(:USR1, Process.pid) && begun.pop && sleep(0.02) }
            main.raise(IOError, "from outside")
          end
          sleep
        end
      rescue IOError, Heddle::Cancelled => e
        print(e.message)
      end
    RUBY
  end

  # One handler waits at home, so the next one runs in a fiber of Heddle's own. It resumes a fiber that waits. Meanwhile
  # the first one starts a task, for which Heddle needs its fiber. The kernel merges signals that it has not delivered.
  def test_handlers_on_top_of_each_other
    needs_patch(:callers_fiber)

    assert_equal("[true]", assert_script(<<~RUBY))
      actions = [-> { sleep(0.02) && Heddle.spawn { true }.value },
                 -> { Enumerator.new { |to| sleep(0.1) && to << true }.next }].cycle
      begun = Thread::Queue.new
      ended = Thread::Queue.new
      trap(:USR1) { (begun << true) && ended << actions.next.call }
      values = Heddle.run(backend: #{backend.inspect}) do
        Heddle.spawn { true }.wait
        Array.new(3) do
          Thread.new { 2.times { Process.kill(:USR1, Process.pid) && begun.pop && sleep(0.005) } }
          Array.new(2) { ended.pop(timeout: 60) }
        end
      end
      print(values.flatten.uniq)
    RUBY
  end
end
