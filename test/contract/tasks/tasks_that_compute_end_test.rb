# frozen_string_literal: true

require "test_helper"

# What ends tasks with time slices that compute, and do not wait any more.
contract "TasksThatComputeEnd" do
  def grace = 0.2

  def compute
    ends = clock + 60
    nil until clock > ends

    flunk("it has computed to its end")
  end

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def fib(number) = number < 2 ? number : fib(number - 1) + fib(number - 2)

  # Runs tasks that compute, one that waits, and the block itself. Each notes that its ensure clause has run.
  def compute_everywhere(notes, begun)
    Heddle.run(backend:, time_slice: 0.001, grace: grace) do
      3.times { |index| Heddle.spawn { noting(notes, index) { compute } } }
      Heddle.spawn { noting(notes, :waits) { loop { sleep(0.001) } } }
      sleep(0.003)
      begun << true
      noting(notes, :block) { yield || compute }
    end
  end

  def noting(notes, name)
    yield
  ensure
    notes << name
  end

  # Ruby 3.3 and 3.4 abort if Fiber#kill takes the place of Thread#kill.
  def test_thread_kill
    needs_patch(:callers_fiber)
    5.times do |index|
      notes = []
      begun = Queue.new
      thread = Thread.new { compute_everywhere(notes, begun) { nil } }
      begun.pop
      sleep(0.002 * index) # so that it comes in the block, in a task, and while all wait
      thread.kill

      assert(thread.join(30), "the thread goes on")
      assert_equal([0, 1, 2, :block, :waits], notes.sort_by(&:to_s))
      refute_predicate(thread, :status)
    end
  end

  # Ruby looks at the interrupts of a thread in each call of a method, also in those at the end of a slice.
  { kill: "", raise: "sent" }.each do |sends, message|
    define_method(:"test_#{sends}_while_a_slice_ends") do
      needs_patch(:callers_fiber)

      assert_equal("#{message}\n", assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend }))
        $sends = nil
        Thread.singleton_class.prepend(Module.new do
          def pending_interrupt?
            sent, $sends = $sends, nil
            Thread.current.public_send(*sent) if sent && Thread.current != Thread.main
            super
          end
        end)
        thread = Thread.new do
          Heddle.run(time_slice: 0.001, grace: 0.1) do
            Heddle.spawn { loop { nil } }
            $sends = #{[sends, *(message unless message.empty?)]}
            loop { nil }
          end
        end
        thread.report_on_exception = false
        begin
          thread.join(60) or exit!(false)
          puts
        rescue RuntimeError => e
          puts e.message
        end
      RUBY
    end
  end

  # Nothing else would end the block: the grace period is longer than the block computes.
  def test_an_exit_in_a_scheduled_fiber_reaches_a_block_that_computes
    needs_patch(:callers_fiber)
    began = clock
    assert_raises(SystemExit) do
      Heddle.run(backend:, time_slice: 0.001, grace: 300) do
        Fiber.schedule { sleep(0.01) && exit }
        compute
      end
    end
    assert_operator(clock - began, :<, 30)
  end

  # In a task that waits, and in one that computes.
  def test_an_exit_in_a_task_ends_the_block
    [-> { sleep(0.01) }, -> { fib(20) }].each do |work|
      notes = []
      assert_raises(SystemExit) do
        compute_everywhere(notes, []) { Heddle.spawn { work.call && exit }.then { nil } }
      end
      assert_equal([0, 1, 2, :block, :waits], notes.sort_by(&:to_s))
    end
  end

  def test_a_failure_of_the_block
    notes = []
    error = assert_raises(IOError) { compute_everywhere(notes, []) { raise IOError, "of the block" } }

    assert_equal("of the block", error.message)
    assert_equal([0, 1, 2, :block, :waits], notes.sort_by(&:to_s))
  end

  # The first cancel waits for a wait. The last one does not, and nothing holds it back.
  def test_the_end_of_the_grace_period
    raised = []
    Heddle.run(backend:, time_slice: 0.001) do
      Heddle.scope(grace: grace) do |scope|
        Heddle.spawn { noting_errors(raised) { Heddle.shield { compute } } }
        Heddle.spawn { noting_errors(raised) { compute } }
        sleep(0.005)
        scope.cancel
      end
    end

    assert_equal([["the grace period of #{grace} s is over", Heddle::Cancelled]] * 2, raised)
  end

  def noting_errors(raised)
    yield
  rescue Exception => e
    raised << [e.message, e.class]
    raise
  end
end
