# frozen_string_literal: true

# bin/test: takes 20 s, 0.5 of a core

require_relative "../../test_helper"
require "json"
require "support/trap_cases"

# What signal handlers do, in the main thread, while all its fibers wait, while one computes, and in a blocking fiber.
# A handler may do what a task may. Each case has a process of its own.
contract "Trap" do
  heddle_only "scripts"

  def test_while_all_wait
    needs_patch(:callers_fiber)

    assert_cases(:waiting, TestSupport::TrapCases::ALL)
  end

  def test_while_a_task_computes = assert_cases(:computing, TestSupport::TrapCases::ALL.except("throw :outside"))

  def test_in_a_blocking_fiber = assert_cases(:blocking, TestSupport::TrapCases::IN_A_BLOCKING_FIBER)

  # (A fiber that is made in a handler never sees a signal.) Each signal is sent when the one before was handled.
  def test_one_after_the_other_while_all_wait
    needs_patch(:callers_fiber)
    ["Heddle.spawn { say }", "Fiber.schedule { say }", "sleep(0.01) && say"].each do |action|
      said = assert_script(<<~RUBY)
        $said = 0
        def say = puts($said += 1)
        trap(:USR1) { #{action} }
        waiting = Thread::Queue.new
        Thread.new do
          waiting.pop
          3.times { |i| sleep(0.05) && Process.kill(:USR1, Process.pid) && (sleep(0.01) until $said > i) }
          exit!(true)
        end
        $stdout.sync = true
        Heddle.run(backend: #{backend.inspect}) { Heddle.spawn { sleep } && (waiting << true) && sleep }
      RUBY

      assert_equal("1\n2\n3\n", said, action)
    end
  end

  # Ruby looks for signals at the end of a system call, too.
  def test_while_a_task_looks_files_up
    needs_patch(:callers_fiber)
    skip("Ruby 3.4 calls the operation in a blocking fiber") if RUBY_VERSION.start_with?("3.4")

    said = assert_script(<<~RUBY)
      ended = 0
      trap(:USR1) do
        queue = Thread::Queue.new # (of its own: a handler may run in the task that would serve another one's)
        Heddle.spawn { sleep(0.001) && queue << 1 }
        queue.pop
        ended += 1
      end
      Thread.new { sleep(200) && exit!(false) }
      Heddle.run(backend: #{backend.inspect}) do
        sender = Thread.new { 60.times { Process.kill(:USR1, Process.pid) && sleep(0.005) } }
        (99.times { File.stat("/") } && sleep(0)) while sender.alive?
      end
      puts(ended > 10)
    RUBY

    assert_equal("true\n", said)
  end

  # A handler runs where a fiber has just come back from a wait: it computes, it does not wait. Without the patch some
  # run in the blocking fiber of the thread, where Ruby's own Timeout refuses a handler.
  def test_a_timeout_in_a_handler_that_computes
    needs_patch(:callers_fiber)
    said = assert_script(<<~RUBY)
      late = 0
      handled = 0
      reader, writer = IO.pipe # (the next signal is sent when the last one was handled)
      trap(:USR1) do
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        Timeout.timeout(0.03) { nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < started + 60 }
      rescue Timeout::Error
        handled += 1
        late += 1 if Process.clock_gettime(Process::CLOCK_MONOTONIC) > started + 50
      ensure
        writer.syswrite("x")
      end
      sender = nil
      Heddle.run(backend: #{backend.inspect}) do
        code = "loop { sleep 0.25; Process.kill(:USR1, \#{$$}); $stdin.readbyte }"
        sender = spawn(RbConfig.ruby, "--disable-gems", "-e", code, in: reader)
        Array.new(4) { Heddle.spawn { sleep(0) until handled >= 3 || late.positive? } }.each(&:wait)
        trap(:USR1, "IGNORE")
      end
      Process.kill(:KILL, sender)
      Process.wait(sender)
      puts(late)
    RUBY

    assert_equal("0\n", said)
  end

  # A signal may come at any moment: while a fiber ends, while another handler waits, while the loop polls. IO#write
  # takes a lock, for which a handler in the blocking fiber of the thread cannot wait; IO#syswrite takes none.
  def test_many
    said = assert_script(<<~RUBY)
      began = ended = 0
      ask, asked = IO.pipe
      answer, answered = IO.pipe
      trap(:USR1) do
        began += 1
        case began % 4
        when 0 then Heddle.spawn { sleep(0.001); ended += 1 }
        when 1 then asked.syswrite("?") && answer.read(1) && (ended += 1)
        when 2 then sleep(0.002) && (ended += 1)
        when 3 then Fiber.schedule { ended += 1 }
        end
      end
      Thread.new { answered.write("!") while ask.read(1) } # (a task that a handler interrupts could not answer it)
      Heddle.run(backend: #{backend.inspect}) do
        until began > 50 # of several that come together, one is handled
          child = spawn(RbConfig.ruby, "--disable-gems", "-e", "300.times { sleep 0.001; Process.kill(:USR1, \#{$$}) }")
          until Process.wait(child, Process::WNOHANG)
            Array.new(20) do |i|
              Heddle.spawn { i.even? ? sleep(0.001) : 99.times { |n| n.to_s } }
            end.each { |task| sleep(0.001) until task.finished? }
          end
        end
        sleep(0.001) until ended == began
        asked.close
      end
      puts(ended == began)
    RUBY

    assert_equal("true\n", said)
  end

  # The next signal often comes while home makes the fiber that the handler of the last one waits for.
  def test_handlers_spawn_in_quick_succession
    said = assert_script(<<~RUBY)
      handled = 0
      over = false
      trap(:USR1) { Heddle.spawn { handled += 1 } unless over }
      Heddle.run(backend: #{backend.inspect}) do
        child = <<~CHILD
          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          2000.times do
            Process.kill(:USR1, \#{$$})
            start = now
            nil while now - start < 0.0001
          end
        CHILD
        Heddle.spawn do # (of signals that come together one is handled)
          Process.wait(spawn(RbConfig.ruby, "--disable-gems", "-e", child)) until handled > 30
          over = true
        end
        (sleep(0.001) && 99.times { |n| n.to_s }) until over
      end
      puts("handled")
    RUBY

    assert_equal("handled\n", said)
  end

  # A fiber that is made in a handler can never lock a Mutex; a task that is spawned there can. Also where the signal
  # comes before anything has waited, and where several come in that time.
  def test_what_a_handler_spawns_may_lock
    said = assert_script(<<~RUBY)
      kill = -> { Process.kill(:USR1, $$) && 9_999.times { |n| n.to_s } }
      trap(:USR1) { Heddle.spawn { sleep(0.001) && Mutex.new.synchronize { $locked += 1 } } }
      programs = [-> { kill.call },
                  -> { Heddle.spawn { kill.call } },
                  -> { Heddle.spawn { kill.call } && kill.call },
                  -> { sleep(0.001) && kill.call },
                  -> { Heddle.spawn { kill.call && sleep(0.001) && kill.call } && Heddle.blocking { kill.call } }]
      programs.each do |program|
        $locked = 0
        Heddle.run(backend: #{backend.inspect}) { program.call }
        puts($locked)
      end
    RUBY

    assert_equal("1\n1\n2\n1\n3\n", said)
  end

  private

  def assert_cases(state, cases)
    parts = cases.keys.each_slice((cases.size / 3.0).ceil)
    outcomes = parts.map { |actions| Thread.new { outcomes_of(state, actions) } }.flat_map(&:value).to_h

    wrong = cases.reject { |action, expected| outcomes[action] == expected }

    assert_equal(wrong, outcomes.slice(*wrong.keys))
  end

  # Each case is a child of a process that has done nothing but load Heddle.
  def outcomes_of(state, actions)
    scripts = actions.map { |action| TestSupport::TrapCases.script(action, state) }
    outcome = run_ruby(<<~RUBY, input: JSON.generate(scripts), env: { "HEDDLE_BACKEND" => backend })
      require "json"
      said = JSON.parse($stdin.read).map do |script|
        reader, writer = IO.pipe
        pid = fork do
          [$stdout, $stderr].each { |stream| stream.reopen(writer) }
          eval(script, TOPLEVEL_BINDING)
        end
        writer.close
        reader.read.tap { Process.wait(pid) }
      end
      print(JSON.generate(said))
    RUBY
    assert_equal([true, ""], [outcome.success?, outcome.err])
    actions.zip(JSON.parse(outcome.out).map { |said| said[0, 300].chomp })
  end
end
