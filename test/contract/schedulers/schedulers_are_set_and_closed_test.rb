# frozen_string_literal: true

require_relative "../../test_helper"

# Setting, closing and misusing a scheduler object.
contract "SchedulerClose" do
  heddle_only "schedulers"

  def in_thread_with_scheduler
    name = backend
    Thread.new do
      scheduler = Heddle::Scheduler.new(backend: name)
      Fiber.set_scheduler(scheduler)
      yield scheduler
    end.join
  end

  def test_close_runs_what_is_left
    ended = false
    scheduler = nil
    in_thread_with_scheduler do |one|
      scheduler = one
      Fiber.schedule { sleep(0.02) && (ended = true) }

      refute_predicate(scheduler, :closed?)
    end

    assert(ended)
    assert_predicate(scheduler, :closed?)
  end

  def test_run_turns_the_loop_until_nothing_is_left
    in_thread_with_scheduler do |scheduler|
      order = []
      Fiber.schedule { sleep(0.01) && (order << 1) }
      scheduler.run
      order << 2

      assert_equal([1, 2], order)
    end
  end

  def test_close_twice
    in_thread_with_scheduler do |scheduler|
      Fiber.schedule { sleep(0.001) }
      scheduler.close
      scheduler.close

      assert_predicate(scheduler, :closed?)
    end
  end

  def test_a_scheduler_that_is_never_used
    before = descriptor_count
    100.times { Heddle::Scheduler.new(backend: backend) }
    GC.start

    assert_operator(descriptor_count, :<=, before + 300)
    Heddle::Scheduler.new(backend: backend).close
  end

  def test_schedule_after_close
    in_thread_with_scheduler do |scheduler|
      Fiber.set_scheduler(nil)

      assert_raises(RuntimeError) { Fiber.schedule { nil } }
      assert_raises(StandardError) { scheduler.fiber { nil } }
    end
  end

  def test_nothing_is_left_open
    before = descriptor_count
    in_thread_with_scheduler do |_scheduler|
      reader, writer = IO.pipe
      Fiber.schedule { reader.readpartial(1) }
      Fiber.schedule { sleep(0.01) && writer.write("x") }
      Fiber.schedule { system("true") }
      Fiber.schedule { Addrinfo.getaddrinfo("localhost", 80) }
      Fiber.set_scheduler(nil)
      [reader, writer].each(&:close)
    end

    assert_operator(descriptor_count, :<=, before)
  end

  def test_the_interface_is_complete
    scheduler = Heddle::Scheduler.new(backend: backend)
    hooks = %i[block unblock kernel_sleep io_wait io_read io_write io_pread io_pwrite io_select io_close process_wait
               timeout_after address_resolve blocking_operation_wait fiber fiber_interrupt yield scheduler_close close]
    hooks -= %i[io_close] unless ruby_at_least?("4.0")

    hooks.each { |hook| assert_respond_to(scheduler, hook) }
  ensure
    scheduler&.close
  end

  def test_needs_a_block
    [-> { Heddle::Scheduler.run(backend:) }, -> { Heddle::Scheduler.new(backend:).run_main }].each do |call|
      assert_match(/\AHeddle::Scheduler\Wrun\w* needs a block\z/, assert_raises(ArgumentError, &call).message)
    end
    assert_nil(Fiber.scheduler)
  end

  def test_the_wrong_backend
    assert_raises(ArgumentError) { Heddle::Scheduler.new(backend: "none") }
    error = assert_raises(ArgumentError) { Heddle::Scheduler.new(backend: "none") }

    assert_match(/none/, error.message)
    assert_match(/epoll/, error.message)
  end

  def test_the_environment_names_the_backend
    out = assert_script("print Heddle.run { Fiber.scheduler.backend }", env: { "HEDDLE_BACKEND" => backend })

    assert_includes(out, backend)
    outcome = run_ruby("Heddle.run { nil }", env: { "HEDDLE_BACKEND" => "none" })

    refute_predicate(outcome, :success?)
    assert_match(/none/, outcome.err)
  end

  def test_the_parameter_wins_over_the_environment
    out = assert_script("print Heddle.run(backend: #{backend.inspect}) { Fiber.scheduler.backend }",
                        env: { "HEDDLE_BACKEND" => backend == "uring" ? "epoll" : "uring" })

    assert_includes(out, backend)
  end

  def test_a_scheduler_belongs_to_one_thread
    scheduler = Heddle::Scheduler.new(backend: backend)
    Thread.new { Fiber.set_scheduler(scheduler) && Fiber.schedule { sleep(0.001) } }.join

    assert_predicate(scheduler, :closed?)
    error = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { sleep(0.001) }
      nil
    rescue StandardError => e
      e
    end.value

    assert_kind_of(StandardError, error)
  end

  # The kill goes on when the fibers have ended.
  def test_a_kill_while_the_scheduler_is_closed
    heddle_only("the end of Heddle's scheduler")

    assert_equal("fiber\nthread\nnil\n", assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend }))
      thread = Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule do
          sleep
        ensure
          puts "fiber"
        end
        begin
          Fiber.set_scheduler(nil)
        rescue IOError
          nil
        ensure
          puts "thread"
        end
        puts "goes on"
      end
      sleep(0.01) until thread.stop?
      thread.kill
      p thread.value
    RUBY
  end
end
