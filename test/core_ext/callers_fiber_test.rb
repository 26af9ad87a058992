# frozen_string_literal: true

require_relative "../test_helper"

# The block of Heddle.run runs in the fiber of its caller, which is not blocking meanwhile.
contract "CallersFiber" do
  heddle_only "Heddle.run"

  def setup
    super
    needs_patch(:callers_fiber)
  end

  def heddle(&block) = Heddle.run(backend: backend, &block)

  # @return [Array] is the fiber that calls blocking, and does its thread count it as such?
  def blocking = [Fiber.current.blocking?, Fiber.blocking?]

  # In a thread of its own, which a test may leave in any state.
  def in_thread(&block)
    thread = Thread.new(&block)
    thread.report_on_exception = false
    thread.value
  end

  def kinds_of_fibers(&block)
    { "root" => -> { in_thread(&block) },
      "resumed" => -> { in_thread { Fiber.new(&block).resume } },
      "resumed, blocking" => -> { in_thread { Fiber.new(blocking: true, &block).resume } },
      "enumerator" => -> { in_thread { Enumerator.new { |y| y << block.call }.next } },
      "in Fiber.blocking" => -> { in_thread { Fiber.new { Fiber.blocking(&block) }.resume } },
      "transferred" => -> { in_thread { transferred(&block) } } }
  end

  def transferred(&block)
    caller = Fiber.current
    Fiber.new { caller.transfer(block.call) }.transfer
  end

  def test_it_is_the_same_fiber_everywhere
    kinds = kinds_of_fibers do
      fiber = Fiber.current
      before = blocking
      inside = heddle { sleep(0.001) && Heddle.spawn { sleep(0.001) }.wait && [Fiber.current, *blocking] }

      assert_equal([fiber, false, false], inside)
      assert_equal(before, blocking)
      :ran
    end

    kinds.each { |kind, run| assert_equal(:ran, run.call, kind) }
  end

  def test_other_entries_do_the_same
    in_thread do
      fiber = Fiber.current

      assert_same(fiber, Heddle.scope { sleep(0.001) && Fiber.current })
      assert_equal([2, 3], Heddle.map([1, 2]) { |n| sleep(0.001) && (n + 1) })
      assert_equal([true, 1], blocking)
    end
  end

  ways_out = {
    "its value" => -> { 1 },
    "an exception" => -> { raise(IOError) },
    "a throw" => -> { throw(:out) },
    "exit" => -> { exit },
    "the failure of a task" => -> { Heddle.spawn { raise IOError } && sleep }
  }
  ways_out.each do |name, leave|
    define_method("test_as_blocking_as_before_after_#{name.tr(" ", "_")}") do
      in_thread do
        catch(:out) { heddle { sleep(0.001) && leave.call } }
      rescue IOError, SystemExit
        nil
      ensure
        assert_equal([true, 1], blocking)
      end
    end
  end

  def test_as_blocking_as_before_after_break_and_kill
    left = in_thread { [heddle { sleep(0.001) && break }, *blocking] }

    assert_equal([nil, true, 1], left)
    seen = nil
    thread = Thread.new do
      heddle { sleep }
    ensure
      seen = blocking
    end
    sleep(0.001) until thread.stop?
    thread.kill.join

    assert_equal([true, 1], seen)
  end

  def test_as_blocking_as_before_in_the_child_of_a_fork
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      pid = Heddle.run { sleep(0.001) && fork }
      Process.wait(pid) if pid
      puts [pid ? "parent" : "child", Fiber.current.blocking?, Fiber.blocking?].join(" ")
    RUBY

    assert_equal("child true 1\nparent true 1\n", outcome.out, outcome.err)
  end

  # -- what follows from it ----------------------------------------------------------------------------------------

  def test_the_locks_of_the_caller
    in_thread do
      monitor = Monitor.new
      mutex = Mutex.new
      again = monitor.synchronize { heddle { sleep(0.001) && monitor.synchronize { :again } } }

      assert_equal(:again, again)
      mutex.synchronize do
        heddle do
          assert_predicate(mutex, :owned?)
          assert_raises(ThreadError) { mutex.lock }
        end
      end
    end
  end

  def test_the_exception_that_its_caller_rescues_is_the_cause
    raise IOError, "before"
  rescue IOError => e
    again = assert_raises(IOError) { heddle { raise } }
    error = assert_raises(KeyError) { heddle { sleep(0.001) && raise(KeyError) } }

    assert_same(e, again)
    assert_same(e, error.cause)
  end

  def test_its_backtrace_goes_on_with_its_caller
    error = assert_raises(IOError) { heddle { raise IOError } }

    assert_equal(1, error.backtrace.grep(/test_its_backtrace_goes_on_with_its_caller'\z/).grep_v(/block/).size)
    assert_empty(error.backtrace.grep(%r{lib/heddle/(scheduler|scope|task)}))
  end

  def each_number(&) = heddle { Heddle.spawn { sleep(20) } && 3.times(&) }

  def test_methods_that_yield_in_it
    assert_equal(0, enum_for(:each_number).first)
    assert_equal(1, enum_for(:each_number).find(&:positive?))
    assert_equal([0, 2], enum_for(:each_number).lazy.map { |n| n * 2 }.first(2))
  end

  def return_out
    heddle { Heddle.spawn { sleep(20) } && (return :returned) }
    :not_here
  end

  def test_what_leaves_it_ends_its_tasks
    ended = []
    value = heddle do
      Heddle.spawn do
        sleep(20)
      ensure
        ended << :task
      end
      break :broken
    end

    assert_equal(%i[broken returned], [value, return_out])
    assert_equal([:task], ended)
  end

  def depth
    deepest = 0
    dive = lambda do
      deepest += 1
      dive.call
    end
    dive.call
  rescue SystemStackError
    deepest
  end

  def test_the_whole_stack
    outside, inside = in_thread { [depth, heddle { sleep(0.001) && depth }] }

    assert_operator(inside, :>, outside * 0.9)
  end

  def test_thread_raise_can_be_rescued_where_it_waits
    log = []
    thread = Thread.new do
      heddle do
        task = Heddle.spawn { sleep(0.05) && (log << :task) }
        begin
          sleep(20)
        rescue IOError
          log << :rescued
        end
        task.wait
      end
    end
    sleep(0.001) until thread.stop?
    thread.raise(IOError)
    thread.join

    assert_equal(%i[rescued task], log)
  end

  def test_ctrl_c_and_what_handlers_raise_can_be_rescued_where_it_waits
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      trap(:USR1) { raise IOError, "handler" }
      Heddle.run do
        Heddle.spawn(background: true) { sleep }
        %i[INT USR1].each do |signal|
          Thread.new { sleep(0.05) && Process.kill(signal, $$) }
          sleep(20)
        rescue Interrupt, IOError => e
          puts e.class
        end
        puts "goes on"
      end
    RUBY

    assert_equal("Interrupt\nIOError\ngoes on\n", outcome.out, outcome.err)
  end

  # Ruby gives control to the fiber that has called transfer when a task ends meanwhile.
  def test_tasks_end_while_the_block_has_left_by_transfer
    values = in_thread do
      heddle do
        home = Fiber.current
        tasks = Array.new(3) { |n| Heddle.spawn { sleep(0.001 * n) && n } }
        other = Fiber.new { sleep(0.02) && home.transfer(:other) }
        [other.transfer, tasks.map(&:value), Heddle.spawn { sleep(0.001) && :later }.value]
      end
    end

    assert_equal([:other, [0, 1, 2], :later], values)
  end

  def test_in_a_ractor
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend }, options: ["-W:no-experimental"])
      class Ractor
        alias value take unless method_defined?(:value)
      end
      ractor = Ractor.new do
        fiber = Fiber.current
        Heddle.run { Heddle.spawn { sleep(0.001) }.wait && Fiber.current.equal?(fiber) }
      end
      p ractor.value
    RUBY

    assert_equal("true\n", outcome.out, outcome.err)
  end

  def test_in_a_handler_and_at_exit
    outcome = run_ruby(<<~'RUBY', env: { "HEDDLE_BACKEND" => backend })
      at_exit { puts Heddle.run { Heddle.spawn { sleep(0.001) && :at_exit }.value } }
      trap(:USR1) { puts Heddle.run { sleep(0.001) && "handler #{Fiber.current.blocking?}" } }
      Process.kill(:USR1, $$)
      puts Fiber.current.blocking?
    RUBY

    assert_equal("handler false\ntrue\nat_exit\n", outcome.out, outcome.err)
  end

  # -- the fallback ------------------------------------------------------------------------------------------------

  def test_switched_off_the_block_is_a_task
    [{ "HEDDLE_WITHOUT" => "callers_fiber" }, { "HEDDLE_SAFE" => "1" }].each do |env|
      outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend, **env })
        fiber = Fiber.current
        p Heddle.run { sleep(0.001) && Fiber.current.equal?(fiber) }
        p Fiber.blocking { Heddle.run { Heddle.spawn { sleep(0.001) && 2 }.value } }
        p Heddle.patches.find { |patch| patch.name == :callers_fiber }.state
      RUBY

      assert_equal("false\n2\n:switched_off\n", outcome.out, outcome.err)
    end
  end
end
