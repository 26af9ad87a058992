# frozen_string_literal: true

# bin/test: takes 20 s, 0.6 of a core

require "fcntl"
require "tempfile"
require "timeout"
require_relative "../../test_helper"

# Timeout.timeout ends a block that never waits, as it does with threads.
contract "ComputingTimeout" do
  def compute(seconds = 20)
    deadline = now + seconds
    nil while now < deadline
    :computed
  end

  def function_without_gvl(name)
    require "fiddle" # (from Ruby 4.0 on it is a gem of its own)
    Fiddle::Function.new(Fiddle.dlopen(nil)[name], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
  rescue LoadError
    skip("no fiddle")
  end

  def test_without_a_class
    reactor do
      error = assert_raises(Timeout::Error) { Timeout.timeout(0.05) { compute } }

      assert_equal("execution expired", error.message)
      assert_equal(:computed, Timeout.timeout(20) { compute(0.01) })
    end
  end

  # Where no loop turns, in fibers of the program's own. One has had a timeout, or has waited, and has ended.
  def test_one_fiber_after_another
    heddle_only("schedulers")
    [-> { Timeout.timeout(20) { nil } }, -> { sleep(0.001) }].each do |first|
      thread = Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new(backend: backend))
        Fiber.new(blocking: false) { first.call }.resume
        Fiber.new(blocking: false) { assert_raises(Timeout::Error) { Timeout.timeout(0.05) { compute } } }.resume
      end

      assert_instance_of(Timeout::Error, thread.value)
    end
  end

  def test_with_a_class_and_a_message
    reactor do
      error = assert_raises(ArgumentError) { Timeout.timeout(0.05, ArgumentError, "too late") { compute } }

      assert_equal("too late", error.message)
    end
  end

  def test_it_is_not_swallowed
    reactor do
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.05) do
          compute
        rescue StandardError
          flunk("rescued inside")
        end
      end
    end
  end

  # Whoever looks finds such a thread in a system call.
  {
    "writes_and_reads" => ->((one, other)) { one.write("x") && other.recv(1) },
    "files" => ->(_) { File.read(__FILE__) },
    "lookups" => ->(_) { File.exist?(__FILE__) },
    "locks" => ->(_) { File.open(__FILE__) { |file| file.flock(File::LOCK_SH) } }
  }.each do |name, call|
    define_method("test_system_calls_that_never_wait_#{name}") do
      reactor do
        pair = socket_pair
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { loop { call.call(pair) } } }
      end
    end
  end

  # Ruby calls no hook there.
  def test_waits_in_a_blocking_fiber
    reader, = pipe
    waits = [-> { sleep(10) }, -> { reader.read(1) }, -> { Thread::Queue.new.pop(timeout: 10) }]
    waits.each do |wait|
      reactor do
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Fiber.blocking { wait.call } } }
        assert_raises(Timeout::Error) { Fiber.blocking { Timeout.timeout(0.05) { wait.call } } }
      end
    end
  end

  # Ruby calls no hook there, either: the fiber that the task has resumed is a blocking one.
  def test_waits_in_a_blocking_fiber_that_was_resumed
    reader, = pipe
    waits = [-> { sleep(10) }, -> { reader.read(1) }, -> { Thread::Queue.new.pop(timeout: 10) }, -> { compute }]
    waits.each do |wait|
      reactor do
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Fiber.new(blocking: true) { wait.call }.resume } }
        assert_raises(Timeout::Error) do
          Timeout.timeout(0.05) { Fiber.new(blocking: true) { Fiber.new(blocking: true) { wait.call }.resume }.resume }
        end
        assert_raises(Timeout::Error) { Fiber.new(blocking: true) { Timeout.timeout(0.05) { wait.call } }.resume }
      end
    end
  end

  # Code in C that lets the GVL go, and asks no hook, as that of bcrypt: whoever looks finds it in a call.
  {
    "timeout" => ->(&block) { Timeout.timeout(0.05, &block) },
    "heddle_timeout" => ->(&block) { Heddle.timeout(0.05, &block) },
    "deadline" => ->(&block) { Heddle.scope(deadline: 0.05, &block) },
    "timeout_in_a_task" => ->(&block) { Heddle.spawn(isolated: true) { Timeout.timeout(0.05, &block) }.value }
  }.each do |name, limit|
    define_method("test_calls_without_a_hook_in_a_#{name}") do
      heddle_only("tasks") unless name == "timeout"
      usleep = function_without_gvl("usleep")
      reactor do
        calls = 0
        assert_raises(Timeout::Error) { limit.call { |*| 1000.times { usleep.call(20_000) && (calls += 1) } } }
        assert_operator(calls, :<, 900)
        assert_equal(:goes_on, Timeout.timeout(20) { usleep.call(20_000) && :goes_on })
      end
    end
  end

  # A call that would never end is interrupted: its thread is.
  def test_a_call_that_waits_for_ever
    Tempfile.create do |file|
      lock = [Fcntl::F_WRLCK, IO::SEEK_SET, 0, 0, 0].pack("ssx4qqlx4")
      ready, told = IO.pipe.each { |io| keep(io) }
      child = fork do
        File.open(file.path, "r+") { |other| other.fcntl(Fcntl::F_SETLKW, lock) && told.write("x") && sleep }
      end
      ready.read(1)

      reactor do
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { file.fcntl(Fcntl::F_SETLKW, lock) } }
      end
    ensure
      Process.kill(:KILL, child) && Process.wait(child)
    end
  end

  def test_a_wait_for_a_ractor
    code = <<~RUBY
      require "timeout"
      Warning[:experimental] = false
      ractor = Ractor.new { sleep }
      wait = ractor.respond_to?(:value) ? ->(*) { ractor.value } : ->(*) { ractor.take }
      Heddle.run(backend: #{backend.inspect}) do
        [wait, ->(*) { Ractor.receive }].each do |one|
          Timeout.timeout(0.05, &one)
        rescue Timeout::Error
          puts "over"
        end
      end
      $stdout.flush
      exit!(true)
    RUBY
    heddle_only("Heddle")

    assert_equal("over\nover\n", assert_script(code, timeout: 100))
  end

  # Neither the timeout nor the others wait for them.
  def test_tasks_that_end_at_once
    heddle_only("has no tasks")
    reactor do
      ticks = 0
      ticker = Heddle.spawn { loop { sleep(0.005) && (ticks += 1) } }

      [-> { Heddle.spawn { 1 }.value }, -> { Fiber.schedule { 1 } }].each do |start|
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { loop { start.call } } }
        enough = ticks + 3
        Timeout.timeout(100) { start.call until ticks >= enough }
      end
      ticker.cancel
    end
  end

  def test_nested
    reactor do
      assert_raises(ZeroDivisionError) { Timeout.timeout(0.05, ZeroDivisionError) { Timeout.timeout(20) { compute } } }
      assert_raises(Timeout::Error) do
        Timeout.timeout(20, ZeroDivisionError) { Timeout.timeout(0.05) { compute } }
      end
    end
  end

  def test_inside_an_enumerator
    reactor do
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Enumerator.new { |yielder| yielder << compute }.next } }
    end
  end

  def test_the_ensure_block_may_wait
    reactor do
      waited = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.05) do
          compute
        ensure
          sleep(0.02)
          waited = true
        end
      end

      assert(waited)
    end
  end

  def test_only_the_task_that_it_is_for
    reactor do
      late = go { Timeout.timeout(0.01) { sleep(20) } }
      jobs = Array.new(3) { go { Timeout.timeout(0.05) { compute } } }

      assert_equal(:computed, compute(0.2))
      assert_equal([Timeout::Error] * 3, jobs.map { |job| job.failure.class })
      assert_instance_of(Timeout::Error, late.failure)
    end
  end

  def test_a_mask_puts_it_off
    reactor do
      computed = nil
      assert_raises(ZeroDivisionError) do
        Timeout.timeout(0.03, ZeroDivisionError) do
          Thread.handle_interrupt(ZeroDivisionError => :never) { computed = compute(0.3) }

          flunk("the end of the mask raises it")
        end
      end

      assert_equal(:computed, computed)
    end
  end

  # The block ends at about the time of the timeout: nothing is raised after it.
  def test_a_timeout_at_the_last_moment
    reactor do
      outcomes = Array.new(300) do
        Timeout.timeout(0.001) { compute(0.00099) }
      rescue Timeout::Error
        :late
      end

      assert_empty(outcomes - %i[computed late])
      assert_equal(:computed, compute(0.15))
      sleep(0.01)
    end
  end

  def test_several_threads
    name = backend
    threads = Array.new(3) do
      Thread.new do
        body = -> { Timeout.timeout(0.05) { compute } }
        reference? ? body.call : Heddle.run(backend: name, &body)
      rescue Timeout::Error
        :late
      end
    end

    assert_equal(%i[late] * 3, threads.map(&:value))
  end

  def test_in_the_child_of_a_fork
    heddle_only("forks inside of a run")
    said = assert_script(<<~RUBY)
      require "timeout"
      Heddle.run(backend: #{backend.inspect}) { Timeout.timeout(0.01) { loop { nil } } rescue puts "parent" }
      $stdout.flush
      Process.wait(fork do
        Heddle.run(backend: #{backend.inspect}) { Timeout.timeout(0.01) { loop { nil } } rescue puts "child" }
      end)
    RUBY

    assert_equal("parent\nchild\n", said)
  end

  def test_its_thread_ends_and_hides_no_deadlock
    heddle_only("its own thread")
    said = assert_script(<<~RUBY)
      require "timeout"
      Heddle.run(backend: #{backend.inspect}) { Timeout.timeout(0.01) { loop { nil } } rescue nil }
      begin
        Heddle.run(backend: #{backend.inspect}) { Thread::Queue.new.pop }
      rescue Heddle::Deadlock
        puts "deadlock"
      end
      sleep(0.05) while Thread.list.size > 1
    RUBY

    assert_equal("deadlock\n", said)
  end

  # The record of the timeout lies on the stack of the block: what is raised when the timeout is taken back must not
  # leave it behind.
  def test_a_thread_raise_behind_the_timeout
    heddle_only("the thread of the scheduler")

    assert_script(<<~RUBY)
      def compute(seconds, started = Process.clock_gettime(Process::CLOCK_MONOTONIC))
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < started + seconds
      end
      def collect(depth) = depth.zero? ? GC.start : collect(depth - 1)
      sent = Class.new(Exception)
      main = Thread.current
      Heddle.run(backend: #{backend.inspect}) do
        8.times do |i|
          begin
            sender = Thread.new { sleep(0.04 + (i * 0.01)) && main.raise(sent) }
            begin
              Timeout.timeout(0.03) { compute(60) }
            rescue Timeout::Error
              compute(60)
            end
          rescue sent
            nil
          end
          sender.join
          collect(50)
          Heddle.spawn { sleep(0.001) }.wait
        end
      end
    RUBY
  end
end
