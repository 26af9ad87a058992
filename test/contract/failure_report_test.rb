# frozen_string_literal: true

require_relative "../test_helper"

# The failure of a plain Fiber.schedule block is told on stderr; the others go on.
contract "FailureReport" do
  def setup
    super
    heddle_only("Fiber.schedule")
  end

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
end
