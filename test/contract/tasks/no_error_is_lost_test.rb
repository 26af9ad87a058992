# frozen_string_literal: true

require_relative "../../test_helper"

# What becomes of the errors of tasks: the first is raised, as it is, with where it comes from; the others are attached
# to it, or reported.
contract "TaskErrors" do
  heddle_only "errors of tasks"

  def run(*, **options, &block)
    block ? Heddle.run(backend: backend, **options, &block) : super(*)
  end

  def fail_here = raise(IOError, "the cause")

  def test_it_is_the_same_object_with_its_own_cause
    raised = nil
    error = assert_raises(IOError) do
      run do
        Heddle.spawn do
          sleep(0.001)
          begin
            Integer("x")
          rescue ArgumentError
            raise raised = IOError.new("no number")
          end
        end
        sleep
      end
    end

    assert_same(raised, error)
    assert_instance_of(ArgumentError, error.cause)
  end

  def test_an_error_without_a_cause_has_none
    error = assert_raises(IOError) { run { Heddle.spawn { sleep(0.001) && fail_here } && sleep } }

    assert_nil(error.cause)
  end

  def test_the_backtrace_goes_on_with_the_spawn_and_the_run
    line = __LINE__ + 1
    error = assert_raises(IOError) { wrapped_run { Heddle.spawn(name: "one") { sleep(0.001) && fail_here } && sleep } }
    expected = [/fail_here'/, /:#{line}:in .*block/, /:#{line}:in 'Heddle\.spawn \(task "one"\)'/, /`?wrapped_run'/]
    places = expected.map { |pattern| error.backtrace.index { |frame| frame.match?(pattern) } }

    refute_includes(places, nil, "#{places} #{error.full_message}")
    assert_equal(places.sort, places)
    assert_equal(0, places.first)
    assert_empty(error.backtrace.grep(%r{/lib/heddle|Scheduler#}))
    assert_match(/fail_here/, error.backtrace_locations.first.to_s)
  end

  def wrapped_run(&) = run(&)

  def test_the_line_that_spawns_a_method_or_a_lambda
    name = backend
    [method(:fail_here), -> { fail_here }].each do |work|
      line = nil
      error = assert_raises(IOError) do
        Heddle.run(backend: name) do
          line = __LINE__ + 1
          Heddle.spawn(&work)
        end
      end

      assert_includes(error.backtrace, "#{__FILE__}:#{line}:in 'Heddle.spawn'")
    end
  end

  def test_through_two_scopes
    error = assert_raises(IOError) do
      run do
        Heddle.spawn(name: "outer") do
          Heddle.scope { |scope| scope.spawn(name: "inner") { sleep(0.001) && fail_here } }
        end
      end
    end

    assert_equal(%w[inner outer], error.backtrace.filter_map { |frame| frame[/\(task "(\w+)"\)/, 1] })
  end

  def test_a_value_that_is_asked_for_twice_says_so_once
    run do
      task = Heddle.spawn(isolated: true, name: "one") { sleep(0.001) && fail_here }

      2.times { assert_raises(IOError) { task.value } }

      assert_equal(1, task.error.backtrace.grep(/\(task "one"\)/).size)
    end
  end

  def test_a_frozen_error
    error = nil
    heard = with_handler do
      error = assert_raises(IOError) do
        run do
          Heddle.spawn(name: "failing") do
            sleep
          ensure
            raise ArgumentError, "in an ensure clause"
          end
          Heddle.spawn { sleep(0.001) && raise(IOError.new("frozen").freeze) }
          sleep
        end
      end
    end

    assert_equal("frozen", error.message)
    assert_equal([["in an ensure clause", "failing"]], heard.map { |told, task| [told.message, task&.name] })
  end

  # -- what else fails -------------------------------------------------------------------------------------------

  def test_what_siblings_raise_in_their_ensure_clauses_is_attached
    error = assert_raises(IOError) do
      run do
        Heddle.spawn do
          sleep
        ensure
          raise ArgumentError, "of a sibling"
        end
        Heddle.spawn { sleep(0.001) && fail_here }
        begin
          sleep
        ensure
          Integer("of the block")
        end
      end
    end

    assert_equal("the cause", error.message)
    assert_equal(['invalid value for Integer(): "of the block"', "of a sibling"].sort,
                 error.suppressed.map(&:message).sort)
    assert_match(/also failed: of a sibling \(ArgumentError\) at /, error.detailed_message)
    assert_match(/also failed: of a sibling/, error.full_message)
  end

  def test_the_message_names_a_few_of_many
    error = assert_raises(IOError) do
      run do
        500.times { |number| spawn_whose_ensure_fails("number #{number}") }
        sleep(0)
        raise IOError, "first"
      end
    end

    assert_equal(500, error.suppressed.size)
    assert_equal(12, error.detailed_message.lines.size)
    assert_equal("  and 490 more (see suppressed)", error.detailed_message.lines.last)
    assert_equal(error.backtrace.size + 11, error.full_message.lines.size)
  end

  def test_what_tasks_raise_when_the_block_has_failed
    error = assert_raises(IOError) do
      run do
        Heddle.spawn do
          sleep
        ensure
          raise ArgumentError, "of a task"
        end
        fail_here
      end
    end

    assert_equal(["the cause", ["of a task"]], [error.message, error.suppressed.map(&:message)])
  end

  def test_of_two_that_fail_at_once
    error = assert_raises(IOError) do
      run do
        gate = Thread::Queue.new
        Heddle.spawn { gate.pop || raise(IOError, "first") }
        Heddle.spawn { gate.pop || raise(ArgumentError, "second") }
        sleep(0)
        gate.close
        sleep
      end
    end

    assert_equal("first", error.message)
    assert_equal(["second"], error.suppressed.map(&:message))
  end

  def test_what_is_meant_for_the_program_goes_first
    error = assert_raises(SystemExit) do
      run do
        Heddle.spawn { sleep(0.001) && fail_here }
        begin
          sleep
        ensure
          exit(3)
        end
      end
    end

    assert_equal([3, ["the cause"]], [error.status, error.suppressed.map(&:message)])
  end

  def test_an_error_with_more_can_be_marshalled
    error = assert_raises(IOError) { run { Heddle.spawn { fail_here } } }
    copy = Marshal.load(Marshal.dump(error))

    assert_equal([error.message, error.backtrace], [copy.message, copy.backtrace])
  end

  # -- isolated tasks --------------------------------------------------------------------------------------------

  def test_the_failure_of_an_isolated_task_goes_to_its_value_only
    heard = with_handler do
      run do
        task = Heddle.spawn(isolated: true) { sleep(0.001) && fail_here }
        sibling = Heddle.spawn { sleep(0.01) && :fine }

        assert_raises(IOError) { task.value }
        assert_equal(:fine, sibling.value)
      end
    end

    assert_empty(heard)
  end

  def test_nobody_asks_so_it_is_reported_when_the_scope_ends
    task = nil
    heard = with_handler { run { task = Heddle.spawn(isolated: true, name: "one") { fail_here } } }

    assert_equal([[IOError, task]], heard.map { |error, told| [error.class, told] })
  end

  def test_or_before_while_the_scope_runs
    with_handler do |heard|
      run do
        Heddle.spawn(isolated: true) { fail_here }
        sleep(0.05) while heard.empty?

        assert_equal(1, heard.size)
      end
    end
  end

  # Each has its second: the report of another one does not shorten it.
  def test_each_has_a_second_before_it_is_reported
    failed = {}
    waited = {}
    with_handler(->(_, task) { waited[task.name] = now - failed[task.name] }) do
      run do
        %w[first second].each do |name|
          failed[name] = now
          Heddle.spawn(isolated: true, name: name) { fail_here }
          sleep(0.6)
        end
        sleep(0.01) until waited.size == 2
      end
    end

    assert_equal(%w[first second], waited.keys)
    waited.each { |name, seconds| assert_operator(seconds, :>=, 1, name) }
  end

  # The other one, which has failed at the same time, is reported.
  def test_one_that_is_asked_before_is_not_reported
    heard = with_handler do |reports|
      run do
        one, other = %w[one other].map { |name| Heddle.spawn(isolated: true, name: name) { fail_here } }
        one.wait
        sleep(0.01) while reports.empty?
        other.wait
      end
    end

    assert_equal(["other"], heard.map { |_, task| task.name })
  end

  def test_a_handler_that_waits_when_the_scope_ends
    heard = with_handler_that_waits do |started|
      run do
        2.times { Heddle.spawn(isolated: true) { fail_here } }
        started.pop
      end
    end

    assert_equal([IOError] * 2, heard)
  end

  def test_a_handler_that_waits_in_a_plain_fiber_when_the_run_fails
    heard = with_handler_that_waits do |started|
      assert_raises(KeyError) { run { Fiber.schedule { fail_here } && started.pop && raise(KeyError) } }
    end

    assert_equal([IOError], heard)
  end

  def test_a_cancelled_one_is_not_reported
    heard = with_handler { run { Heddle.spawn(isolated: true) { sleep }.cancel } }

    assert_empty(heard)
  end

  def test_what_is_meant_for_the_program_is_not_isolated
    assert_raises(SystemExit) { run { Heddle.spawn(isolated: true) { exit } && sleep } }
  end

  def test_without_a_handler_it_is_printed
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      Heddle.run { Heddle.spawn(isolated: true, name: "one") { raise IOError, "not heard" } }
    RUBY

    assert_match(/#<Heddle::Task one failed> terminated with exception .*\n-e:1.*not heard \(IOError\)/, outcome.err)
    assert_predicate(outcome, :success?)
  end

  def test_the_error_of_a_plain_fiber
    heard = with_handler { run { Fiber.schedule { fail_here } } }

    assert_equal([[IOError, nil]], heard.map { |error, task| [error.class, task] })
  end

  def test_a_handler_that_fails
    _, said = capture_io do
      with_handler(->(*) { raise ArgumentError, "in the handler" }) { run { Fiber.schedule { fail_here } } }
    end

    assert_match(/the cause.*heddle: the handler of Heddle\.on_error has failed:.*in the handler/m, said)
  end

  def test_bad_handler
    error = assert_raises(ArgumentError) { Heddle.on_error(3) }

    assert_match(/\Ahandler: /, error.message)
  end

  # -- ways out of the block -------------------------------------------------------------------------------------

  def test_a_throw_leaves_the_block
    ended = []
    thrown = catch(:out) do
      run do
        Heddle.spawn do
          sleep
        ensure
          ended << true
        end
        throw :out, :thrown
      end
    end

    assert_equal([:thrown, [true]], [thrown, ended])
  end

  def test_a_throw_leaves_a_task
    assert_equal(:found, catch(:out) { run { Heddle.spawn { sleep(0.001) && throw(:out, :found) } && sleep } })
    run { assert_equal(:found, catch(:out) { Heddle.scope { |scope| scope.spawn { throw(:out, :found) } && sleep } }) }
  end

  def test_a_throw_that_nobody_catches
    error = assert_raises(UncaughtThrowError) { run { throw :nowhere } }

    assert_match(/#{Regexp.escape(__FILE__)}/, error.backtrace.first)
  end

  def test_what_fails_when_a_deadline_is_over
    error = assert_raises(Heddle::TimeoutError) do
      run do
        Heddle.scope(deadline: 0.001) do
          spawn_whose_ensure_fails("cannot close")
          sleep
        end
      end
    end

    assert_equal(["cannot close"], error.suppressed.map(&:message))
    assert_nil(error.cause)
  end

  def test_ruby_shortens_the_report_of_an_endless_recursion
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      def deeper = deeper
      Heddle.run { Heddle.spawn(name: "one") { sleep(0.001) && deeper } && sleep }
    RUBY

    assert_match(/stack level too deep \(SystemStackError\)\n.* levels\.\.\./m, outcome.err)
    assert_equal(1, outcome.err.scan(/^A task has \d+ KiB for its calls: .* RUBY_FIBER_VM_STACK_SIZE /).size)
    assert_match(/spawn \(task "one"\)'\n\tfrom -e:2:in .<main>/, outcome.err)
    assert_operator(outcome.err.lines.size, :<, 30)
    refute_match(%r{lib/heddle}, outcome.err)
  end

  # -- classes of errors that do odd things ------------------------------------------------------------------------

  def mute_error
    Class.new(StandardError) { def to_s = raise(NoMethodError, "it cannot tell") }.new
  end

  def test_an_error_that_cannot_tell_its_message_ends_its_scope
    errors = [mute_error, IOError.new("caf\u00e9".encode("UTF-16LE"))]
    errors.each do |failure|
      ended = false
      raised = run do
        Heddle.scope do
          Heddle.spawn do
            sleep
          ensure
            ended = true
          end
          Heddle.spawn { raise failure }
          sleep
        end
      rescue StandardError => e
        e
      end

      assert_same(failure, raised)
      assert(ended)
    end
  end

  def test_any_reason_of_a_cancel
    run do
      reason = mute_error
      task = Heddle.spawn { sleep }
      task.cancel(reason).wait

      assert_equal("the task was cancelled: #{reason.class}", task.error.message)
    end
  end

  def test_a_class_with_a_cause_of_another_kind
    failure = Class.new(IOError) { def cause = :network }.new
    raised = assert_raises(failure.class) { run { Heddle.spawn { sleep(0.001) && raise(failure) } && sleep } }

    assert_same(failure, raised)
  end

  def test_errors_that_are_equal_are_several
    failure = Class.new(IOError) do
      def ==(_other) = true
      alias_method :eql?, :==
      def hash = 1
    end
    first, *others = Array.new(4) { failure.new }
    error = assert_raises(failure) do
      run do
        others.each { |other| Heddle.spawn { ensure_raised(other) } }
        raise first
      end
    end

    assert_same(first, error)
    assert_equal(others.map(&:object_id).sort, error.suppressed.map(&:object_id).sort)
  end

  def test_errors_that_cannot_be_compared
    failure = Class.new(IOError) { %i[== eql? hash].each { |name| define_method(name) { |*| raise(NoMethodError) } } }
    error = assert_raises(failure) do
      run do
        2.times { Heddle.spawn { ensure_raised(failure.new) } }
        raise failure
      end
    end

    assert_equal(2, error.suppressed.size)
  end

  def test_messages_whose_encodings_differ
    messages = ["caf\u00e9", "caf\u00e9".encode("ISO-8859-1"), "caf\u00e9".b]
    error = assert_raises(IOError) do
      run do
        messages.drop(1).each { |message| spawn_whose_ensure_fails(message) }
        Heddle.spawn { raise IOError, messages.first }
        sleep
      end
    end

    assert_equal(3, error.detailed_message.scan("caf\u00e9").size)
    none = assert_raises(Heddle::NoneSucceeded) { Heddle.any(*messages.map { |message| -> { raise message } }) }

    assert_equal(3, none.message.scan("caf\u00e9").size)
  end

  def spawn_whose_ensure_fails(message)
    Heddle.spawn do
      sleep
    ensure
      raise message
    end
  end

  def test_break_and_return_leave_no_task
    leaves = [-> { run { Heddle.spawn { break 3 } } }, -> { run { Heddle.spawn { return 3 } } }]

    leaves.each { |leave| assert_raises(LocalJumpError, &leave) }
  end

  def test_break_leaves_a_nested_run
    assert_equal(:inner, run { Heddle.run { break :inner } })
    assert_equal(:inner, run { Heddle.scope { break :inner } })
  end

  # -- what comes from outside -----------------------------------------------------------------------------------

  def waits_here(queue) = queue.pop

  def test_thread_raise_names_the_line_where_the_program_waits
    needs_patch(:callers_fiber)
    name = backend
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) { waits_here(Thread::Queue.new) }
    end
    sleep(0.01) until thread.stop?
    thread.raise(IOError, "from outside")
    error = assert_raises(IOError) { thread.value }

    assert_equal(1, error.backtrace.grep(/waits_here'/).size, error.full_message)
  end

  def test_what_fails_when_the_thread_is_struck
    name = backend
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Heddle.run(backend: name) do
        2.times { |number| spawn_whose_ensure_fails("cannot close #{number}") }
        waits_here(Thread::Queue.new)
      end
    end
    sleep(0.01) until thread.stop?
    thread.raise(IOError, "from outside")
    error = assert_raises(IOError) { thread.value }

    assert_equal("from outside", error.message)
    assert_equal(["cannot close 0", "cannot close 1"], error.suppressed.map(&:message))
  end

  def test_what_fails_when_the_time_around_a_run_is_over
    error = assert_raises(Heddle::TimeoutError) do
      Heddle.timeout(0.05) { run { spawn_whose_ensure_fails("cannot close") && sleep } }
    end

    assert_equal(["cannot close"], error.suppressed.map(&:message))
  end

  def test_ctrl_c_names_the_line
    needs_patch(:callers_fiber)
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      def waits_here = sleep
      begin
        Heddle.run do
          Thread.new { sleep(0.05) && Process.kill(:INT, $$) }
          waits_here
        end
      rescue Interrupt => e
        puts e.backtrace
      end
    RUBY

    assert_match(/waits_here'\n-e:5:in .*\n-e:3:in /, outcome.out, outcome.err)
    refute_match(%r{lib/heddle}, outcome.out)
  end

  private

  def ensure_raised(error)
    sleep
  ensure
    raise error
  end

  def with_handler_that_waits
    heard = []
    started = Thread::Queue.new
    handler = lambda do |error, _|
      started << true
      sleep 0.05
      heard << error.class
    end
    with_handler(handler) { yield started }
    heard
  end

  def with_handler(handler = nil)
    heard = []
    Heddle.on_error(handler || ->(error, task) { heard << [error, task] })
    yield heard
    heard
  ensure
    Heddle.on_error(nil)
  end
end
