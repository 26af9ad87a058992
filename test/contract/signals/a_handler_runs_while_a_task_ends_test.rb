# frozen_string_literal: true

# bin/test: takes 6 s, 0.6 of a core

require_relative "../../test_helper"

# Ruby runs a signal's handler wherever the main thread is: also in the midst of what Heddle does when a task ends. The
# handler may wait, raise or be cancelled there. The script tries each line and each call of that, with each action.
contract "HandlerAtTheEnd" do
  heddle_only "scripts"

  # What the handler does => what Heddle.run ends with.
  {
    "sleep(0.001)" => "returned",
    "Heddle.spawn { sleep(0.001) }.value" => "returned",
    "Heddle.run { sleep(0.001) }" => "returned",
    "$sleeper.cancel.wait" => "returned",
    "raise ZeroDivisionError" => "ZeroDivisionError",
    "Thread.main.raise(ZeroDivisionError)" => "ZeroDivisionError",
    "exit(7)" => "SystemExit",
    "Fiber.schedule { raise Interrupt }; sleep" => "Interrupt",
    "Heddle.spawn { raise KeyError }; sleep" => "KeyError"
  }.each do |action, outcome|
    define_method("test_#{action}") do
      needs_patch(:callers_fiber)
      said = assert_script(format(<<~RUBY, action: action, backend: backend.inspect))
        trap(:USR1) { %<action>s; $handled << true }

        # @return [Boolean] was there a step of this number?
        def signal_at(step)
          seen = 0
          fiber = nil
          steps = TracePoint.new(:line, :return, :c_return) do |event|
            next unless Fiber.current.equal?(fiber) && event.path.include?("/lib/heddle/") && (seen += 1) == step

            steps.disable
            Process.kill(:USR1, Process.pid)
          end
          Heddle.run(backend: %<backend>s) do
            $handled = Thread::Queue.new
            $sleeper = Heddle.spawn { sleep }
            Heddle.spawn { (fiber = Fiber.current) && sleep(0) && steps.enable }.wait
            steps.disable
            $handled.pop unless seen < step
            $sleeper.cancel
          end
          $ends << :returned unless seen < step
          seen == step
        rescue Exception => e
          $ends << e.class
          true
        end

        $ends = []
        step = 0
        nil while signal_at(step += 1)
        puts($ends.tally.map { |ended, count| "\#{ended} \#{count > 10}" })
      RUBY

      assert_equal("#{outcome} true\n", said)
    end
  end
end
