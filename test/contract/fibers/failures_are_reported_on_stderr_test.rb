# frozen_string_literal: true

# bin/test: takes 12 s, 0.7 of a core

require_relative "../../test_helper"

# The failure of a plain Fiber.schedule block is reported on stderr; the others go on.
contract "FailureReport" do
  heddle_only "Fiber.schedule"

  def test_the_others_go_on
    outcome = run_ruby(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        Fiber.schedule { raise ArgumentError, "before the first wait" }
        Fiber.schedule { sleep(0.01); raise ZeroDivisionError, "after it" }
        Fiber.schedule { sleep(0.05); puts "other" }
        sleep(0.1)
        puts "main"
      end
      puts "end"
    RUBY

    assert_equal("other\nmain\nend\n", outcome.out)
    assert_predicate(outcome, :success?)
    assert_match(/ArgumentError/, outcome.err)
    assert_match(/before the first wait/, outcome.err)
    assert_match(/after it \(ZeroDivisionError\)/, outcome.err)
    assert_match(/-e:3/, outcome.err)
  end

  def test_under_set_scheduler
    outcome = run_ruby(<<~RUBY)
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: #{backend.inspect}))
      Fiber.schedule { sleep(0.01); raise ZeroDivisionError, "in the fiber" }
      Fiber.schedule { sleep(0.05); puts "other" }
      puts "main"
    RUBY

    assert_equal("main\nother\n", outcome.out)
    assert_predicate(outcome, :success?)
    assert_match(/in the fiber/, outcome.err)
  end

  def test_the_cause_is_told_too
    outcome = run_ruby(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        Fiber.schedule do
          raise "the cause"
        rescue
          raise "the consequence"
        end
      end
    RUBY

    assert_match(/the consequence/, outcome.err)
    assert_match(/the cause/, outcome.err)
  end

  # As for threads: Thread.report_on_exception = false or raise inside of a task is not told twice.
  def test_a_failing_task_is_told_once
    outcome = run_ruby(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        Heddle.spawn { sleep(0.01); raise "in the task" }
        sleep(5)
      end
    RUBY

    refute_predicate(outcome, :success?)
    assert_equal(1, outcome.err.scan("in the task").size, outcome.err)
  end

  def test_a_cancelled_task_is_not_told
    assert_script(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) { Heddle.spawn { sleep }.cancel }
    RUBY
  end

  def test_a_killed_fiber_is_not_told
    assert_script(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) { Fiber.schedule { sleep }.kill }
    RUBY
  end

  # In each of these an error is reported, and nothing else ends the program.
  {
    a_plain_fiber: 'Heddle.run { Fiber.schedule { raise "down" } && sleep }',
    an_isolated_task: 'Heddle.run { Heddle.spawn(isolated: true) { raise "down" } && sleep }',
    an_abandoned_scope: <<~RUBY, # when the scheduler is closed
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        failing = ->(scope) { scope.spawn { sleep(0.001) && raise("down") } }
        Enumerator.new { |one| Heddle.scope { |scope| failing.(scope) && one << 1 } }.next
      end
      Fiber.set_scheduler(nil)
      sleep
    RUBY
    a_run_of_its_own: 'Heddle.start { raise "down" } && sleep'
  }.each do |name, program|
    define_method("test_a_handler_that_exits_after_the_error_of_#{name}") do
      outcome = run_ruby("Heddle.on_error { exit(3) }\n#{program}", env: { "HEDDLE_BACKEND" => backend })

      assert_equal([3, "", ""], [outcome.status.exitstatus, outcome.out, outcome.err])
    end
  end

  def test_a_signal_while_an_error_is_reported
    out = assert_script(<<~RUBY)
      slow = Class.new(StandardError) do
        def message
          Process.kill(:INT, Process.pid) && (nil until defined?(nobody)) # until the signal comes
        end
      end
      begin
        Heddle.run(backend: #{backend.inspect}) { Fiber.schedule { raise slow } && sleep }
      rescue Interrupt
        puts "interrupted"
      end
    RUBY

    assert_equal("interrupted\n", out)
  end

  # The reports on stderr when a thread and when a fiber fails, but for the name of either.
  def reports(failure, before: "")
    heddle = "Heddle.run(backend: #{backend.inspect}) { Fiber.schedule { work } }"
    ["Thread.new { work }.join rescue nil", heddle].map do |start|
      outcome = run_ruby("#{before}\ndef work\n#{failure}\nend\n#{start}\n")

      assert_predicate(outcome, :success?, outcome.err)
      outcome.err.b.lines.grep_v(/\A\tfrom /).join.gsub(/#<(Thread|Fiber):\S+.*?>/, "#<...>")
    end
  end

  def assert_as_threads(failure, **)
    threads, fibers = reports(failure, **)

    assert_equal(threads, fibers)
    fibers
  end

  def test_as_of_a_thread
    said = assert_as_threads('raise "no good"')

    assert_match(/\A#<...> terminated with exception \(report_on_exception is true\):\n.*no good \(Runtime/, said)
    assert_match(/first/, assert_as_threads('begin; raise "first"; rescue; raise "second"; end'))
  end

  def test_it_is_no_warning
    assert_match(/no good/, assert_as_threads('raise "no good"', before: "$VERBOSE = nil"))
    assert_match(/no good/, assert_as_threads('raise "no good"', before: "def Warning.warn(*) = nil"))
    assert_match(/no good/, assert_as_threads('raise "no good"', before: "def warn(*) = nil"))
  end

  def test_where_threads_report_nothing
    assert_empty(assert_as_threads('raise "no good"', before: "Thread.report_on_exception = false"))
    assert_empty(assert_as_threads('Thread.current.report_on_exception = false; raise "no good"'))
  end

  def test_to_another_object
    told = assert_as_threads('raise "no good"', before: <<~RUBY)
      at_exit { STDERR.puts($told.join) }
      $told = []
      $stderr = Class.new { def write(*texts) = $told.concat(texts).size }.new
    RUBY

    assert_match(/no good/, told)
  end

  def test_exceptions_that_cannot_be_told
    classes = { "message" => "raise", "detailed_message" => "raise", "backtrace" => "raise", "to_s" => "nil" }
    classes.each do |method, does|
      said = reports("raise Odd", before: "class Odd < StandardError; def #{method}(**) = #{does}; end")

      said.each { |text| assert_match(/\A#<...> terminated .*\n.*Odd/, text, method) }
    end
  end

  def test_encodings
    said = assert_as_threads('raise "\xE4".dup.force_encoding("ISO-8859-1")', before: 'ENV["LANG"] = "C.UTF-8"')

    assert_includes(said, "\xE4".b)
  end
end
