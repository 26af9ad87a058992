# frozen_string_literal: true

# bin/test: takes 10 s, 0.5 of a core

require_relative "../../test_helper"

# Before it sleeps, the loop asks methods in Ruby whether the fibers can ever go on. A signal that comes while such a
# method runs is handled as any other: in the fiber in which the program waits. There it may wait for a task. In each
# program a task is the last fiber that begins to wait.
contract "HandlersInQuestions" do
  heddle_only("questions of the loop")

  # What the program does to be asked. The signal comes in a method that is called for the answer.
  questions = {
    deadlock: <<~RUBY,
      Thread.singleton_class.prepend(Module.new { def ignore_deadlock = signal { super } })
      def ask = Heddle.spawn { sleep(0.01) && Thread::Queue.new.pop }
    RUBY
    circle_of_locks: <<~RUBY,
      Thread.singleton_class.prepend(Module.new { def ignore_deadlock = signal { super } })
      def ask
        one, two = Array.new(2) { Thread::Mutex.new }
        Heddle.spawn { one.synchronize { sleep(0.02) && two.synchronize { nil } } }
        Heddle.spawn { two.synchronize { sleep(0.01) && one.synchronize { nil } } }
      end
    RUBY
    clock_of_a_test: <<~RUBY
      require "heddle/testing"
      def ask
        reader, @writer = IO.pipe
        def reader.closed? = signal { super }
        Heddle.spawn { sleep(1) && Heddle.timeout(3600) { reader.read(1) } }
      end
    RUBY
  }

  define_method(:said) do |question, handler|
    assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      def signal
        $signalled ||= Process.kill(:USR1, Process.pid)
        yield
      end
      #{questions[question]}
      queue = Thread::Queue.new
      trap(:USR1) { #{handler} }
      begin
        Heddle#{"::Testing" if question == :clock_of_a_test}.run do
          task = ask
          puts queue.pop
          task.cancel
        rescue KeyError => e
          puts e.message, task.alive?
          $stdout.flush
          exit!(true)
        end
      rescue Heddle::Deadlock
        puts "deadlock"
      end
    RUBY
  end

  questions.each_key do |question|
    define_method("test_the_error_of_a_handler_#{question}") do
      needs_patch(:callers_fiber)

      assert_equal("of the handler\ntrue\n", said(question, 'raise KeyError, "of the handler"'))
    end

    define_method("test_a_handler_that_waits_#{question}") do
      needs_patch(:callers_fiber) if question == :circle_of_locks # HEDDLE_SAFE also leaves out who holds a Mutex
      out = said(question, "Heddle.spawn { sleep(0.001) && queue << :handled }.wait")

      assert_equal("handled\n#{"deadlock\n" if question == :circle_of_locks}", out)
    end
  end
end
