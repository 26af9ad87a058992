# frozen_string_literal: true

# bin/test: takes 25 s, 0.3 of a core

require_relative "../../test_helper"

# exit, signals and errors reach the thread that runs the scheduler; ensure blocks and at_exit run.
contract "Exit" do
  heddle_only "scripts"

  # Runs a script in which main_entry opens a Heddle.run and set_entry a set_scheduler.
  def script(body, entry, **, &)
    head = "at_exit { puts 'at_exit' }\n"
    code = if entry == :run
             "#{head}Heddle.run(backend: #{backend.inspect}) do\n#{body}\nend\n"
           else
             "#{head}Fiber.set_scheduler(Heddle::Scheduler.new(backend: #{backend.inspect}))\n#{body}\n"
           end
    run_ruby("$stdout.sync = true\n#{code}", **, &)
  end

  # A fiber that waits, and says when its ensure block runs.
  def waiting
    <<~RUBY
      Fiber.schedule do
        sleep
      ensure
        puts "ensured"
      end
    RUBY
  end

  %i[run set_scheduler].each do |entry|
    define_method("test_exit_in_a_fiber_#{entry}") do
      outcome = script("#{waiting}Fiber.schedule { sleep(0.02); exit(3) }\nsleep(#{entry == :run ? 10 : 0.2})\n", entry)

      assert_equal([3, "ensured\nat_exit\n", ""], [outcome.status.exitstatus, outcome.out, outcome.err])
    end

    define_method("test_exit_before_the_first_wait_#{entry}") do
      outcome = script("#{waiting}Fiber.schedule { exit(3) }\nsleep(#{entry == :run ? 10 : 0.1})\n", entry)

      assert_equal([3, "ensured\nat_exit\n", ""], [outcome.status.exitstatus, outcome.out, outcome.err])
    end

    define_method("test_exit_in_the_main_program_#{entry}") do
      outcome = script("#{waiting}exit(4)", entry)

      assert_equal([4, "ensured\nat_exit\n", ""], [outcome.status.exitstatus, outcome.out, outcome.err])
    end

    define_method("test_abort_in_a_fiber_#{entry}") do
      outcome = script("Fiber.schedule { sleep(0.02); abort('message') }\nsleep(#{entry == :run ? 10 : 0.2})\n", entry)

      assert_equal([1, "at_exit\n", "message\n"], [outcome.status.exitstatus, outcome.out, outcome.err])
    end

    define_method("test_interrupt_#{entry}") do
      outcome = script("#{waiting}puts 'ready'\nsleep\n", entry) { |pid| signal_when_waiting(:INT, pid) }

      assert_equal(Signal.list["INT"], outcome.status.termsig, outcome.inspect)
      assert_equal("ready\nensured\nat_exit\n", outcome.out)
    end

    define_method("test_interrupt_while_a_fiber_reads_#{entry}") do
      body = <<~RUBY
        Fiber.schedule do
          IO.pipe { |reader, _writer| reader.read }
        ensure
          puts "ensured"
        end
        #{"sleep" if entry == :run}
      RUBY
      outcome = script(body, entry) { |pid| signal_when_waiting(:INT, pid) }

      assert_equal(Signal.list["INT"], outcome.status.termsig, outcome.inspect)
      assert_equal("ensured\nat_exit\n", outcome.out)
    end

    define_method("test_interrupt_while_a_fiber_computes_#{entry}") do
      body = <<~RUBY
        #{waiting}
        Fiber.schedule do
          sleep(0.01)
          Process.setproctitle("computing")
          loop { 1 + 1 }
        end
        sleep(#{entry == :run ? 10 : 0.1})
      RUBY
      outcome = script(body, entry) do |pid|
        sleep(0.02) until File.read("/proc/#{pid}/cmdline").start_with?("computing")
        Process.kill(:INT, pid)
      end

      assert_equal(Signal.list["INT"], outcome.status.termsig, outcome.inspect)
      assert_equal("ensured\nat_exit\n", outcome.out)
    end

    define_method("test_a_trap_runs_while_fibers_wait_#{entry}") do
      body = <<~RUBY
        queue = Thread::Queue.new
        trap(:USR1) { queue.push(:signal) }
        Fiber.schedule { puts queue.pop }
        Process.kill(:USR1, Process.pid)
        sleep(0.05)
      RUBY
      outcome = script(body, entry)

      assert_equal(["signal\nat_exit\n", ""], [outcome.out, outcome.err])
    end

    define_method("test_a_trap_that_raises_#{entry}") do
      body = <<~RUBY
        trap(:USR1) { raise "from the trap" }
        #{waiting}
        #{"sleep" if entry == :run}
      RUBY
      outcome = script(body, entry) { |pid| signal_when_waiting(:USR1, pid) }

      assert_equal([1, "ensured\nat_exit\n"], [outcome.status.exitstatus, outcome.out])
      assert_match(/from the trap/, outcome.err)
    end
  end

  def test_exit_in_a_task
    outcome = run_ruby(<<~RUBY)
      at_exit { puts "at_exit" }
      Heddle.run(backend: #{backend.inspect}) do
        Heddle.spawn do
          sleep
        ensure
          puts "sibling"
        end
        Heddle.spawn { sleep(0.02); exit(5) }
        begin
          sleep
        ensure
          puts "main"
        end
      end
    RUBY

    assert_equal([5, ""], [outcome.status.exitstatus, outcome.err])
    assert_equal(%w[at_exit main sibling], outcome.out.split.sort)
  end

  def test_interrupt_can_be_rescued_outside
    outcome = run_ruby(<<~RUBY) { |pid| signal_when_waiting(:INT, pid) }
      begin
        Heddle.run(backend: #{backend.inspect}) { sleep }
      rescue Interrupt
        puts "rescued"
      end
      puts Heddle.run(backend: #{backend.inspect}) { sleep(0.01); "again" }
    RUBY

    assert_equal(["rescued\nagain\n", ""], [outcome.out, outcome.err])
  end

  def test_exit_bang_ends_at_once
    outcome = script("#{waiting}Fiber.schedule { exit!(6) }", :run)

    assert_equal([6, "", ""], [outcome.status.exitstatus, outcome.out, outcome.err])
  end

  # Interrupts must not be held up by a mask that a waiting fiber has set for itself.
  def test_interrupt_while_a_fiber_waits_with_a_mask
    body = <<~RUBY
      Fiber.schedule do
        Thread.handle_interrupt(Interrupt => :never) { sleep }
      end
      sleep
    RUBY
    outcome = script(body, :run) { |pid| signal_when_waiting(:INT, pid) }

    assert_equal(Signal.list["INT"], outcome.status.termsig, outcome.inspect)
  end

  # Ruby runs signal handlers at the end of its handle_interrupt, and crashes there if the block has raised an error and
  # a handler rescues another one.
  def test_interrupt_with_a_mask_and_a_signal_at_the_same_moment
    outcome = run_ruby(<<~RUBY)
      class Stop < Interrupt
        # Ruby calls it while it raises the error, and runs no handler before the error is raised.
        def backtrace
          Process.kill(:USR2, Process.pid)
          super
        end
      end
      handled = 0
      trap(:USR2) do
        raise "in the handler"
      rescue RuntimeError
        handled += 1
      end
      main = Thread.current
      begin
        Heddle.run(backend: #{backend.inspect}) do
          Heddle.spawn { Thread.handle_interrupt(Interrupt => :never) { sleep(0.1) } }
          Thread.new { sleep(0.02) && main.raise(Stop, "from outside") }
          sleep
        end
      rescue Stop => e
        puts e.message
      end
      puts handled > 0
    RUBY

    assert_equal(["from outside\ntrue\n", ""], [outcome.out, outcome.err])
  end

  def test_at_exit_may_use_a_scheduler
    outcome = run_ruby(<<~RUBY)
      at_exit { puts Heddle.run(backend: #{backend.inspect}) { sleep(0.01); "in at_exit" } }
      Heddle.run(backend: #{backend.inspect}) { sleep(0.01) }
    RUBY

    assert_equal(["in at_exit\n", ""], [outcome.out, outcome.err])
  end
end
