# frozen_string_literal: true

require_relative "../../test_helper"

# The Cancelled that has ended a task is raised in whoever asks for its value: there it is an error like any other.
contract "SomebodyElsesCancel" do
  heddle_only "tasks"

  def run(*, &block) = block ? Heddle.run(backend: backend, grace: 100, &block) : super(*)

  def cancelled = Heddle.spawn { sleep }.tap { |task| task.cancel(:enough).wait }

  def test_a_task_that_waits_for_it_fails
    run do
      other = cancelled
      waiter = Heddle.spawn(isolated: true) { other.value }.wait

      assert_equal([:failed, false, other.error], [waiter.status, waiter.cancelled?, waiter.error])
      assert_equal([:cancelled, true], [other.status, other.cancelled?])
    end
  end

  # The task starts between two lines of the cancel, which another thread sends.
  def test_another_thread_cancels_a_task_that_starts
    (1..10).each { |line| assert_equal(1, cancels_heard(line), "line #{line} of raise_into") }
  end

  def test_and_so_does_its_scope
    ended = nil
    error = assert_raises(Heddle::Cancelled) do
      run do
        other = cancelled
        Heddle.spawn do
          sleep
        rescue Heddle::Cancelled => e
          ended = e
          raise
        end
        Heddle.spawn { other.value }
        sleep
      end
    end

    assert_equal(:enough, error.reason)
    assert_same(error, ended.reason)
  end

  def test_what_else_fails_is_attached_to_it
    error = assert_raises(Heddle::Cancelled) do
      run do
        Heddle.spawn do
          sleep
        ensure
          raise IOError, "in an ensure clause"
        end
        cancelled.value
      end
    end

    assert_equal(["in an ensure clause"], error.suppressed.map(&:message))
  end

  def test_of_an_item_of_map
    run do
      waiter = Heddle.spawn(isolated: true) do
        Heddle.map([1, 2]) { |number| number == 2 ? Heddle.current_task.cancel(:two) && sleep : sleep }
      end

      assert_equal(:two, assert_raises(Heddle::Cancelled) { waiter.value }.reason)
      assert_equal(:failed, waiter.status)
    end
  end

  def test_of_a_plain_fiber_it_is_reported
    heard = []
    Heddle.on_error { |error, _| heard << error.reason }
    run do
      other = cancelled
      Fiber.schedule { other.value }
    end

    assert_equal([:enough], heard)
  ensure
    Heddle.on_error(nil)
  end

  # Who has been cancelled itself is cancelled, whatever it waits for.
  def test_of_a_task_that_is_cancelled_with_it
    run do
      other = Heddle.spawn { sleep }
      waiter = Heddle.spawn { other.value }
      [other, waiter].each(&:cancel)

      assert_equal(:cancelled, waiter.wait.status)
    end
  end

  # A worker that is started anew is no clean-up: it ends with its scope at once, not after the grace period.
  def test_a_worker_that_is_restarted_in_a_rescue_clause
    worker = nil
    seconds = elapsed do
      assert_raises(KeyError) do
        run do
          begin
            cancelled.value
          rescue Heddle::Cancelled
            worker = Heddle.spawn { sleep }
          end
          raise KeyError
        end
      end
    end

    assert_equal(:cancelled, worker.status)
    assert_operator(seconds, :<, 50)
  end

  def test_a_worker_that_is_restarted_while_its_scope_ends
    workers = []
    seconds = elapsed do
      assert_raises(KeyError) do
        run do
          Heddle.spawn do
            Heddle.shield { sleep(0.02) && supervise(workers) }
          end
          raise KeyError
        end
      end
    end

    assert_equal([:cancelled], workers.map(&:status))
    assert_operator(seconds, :<, 50)
  end

  private

  # Holds the start of a task, which has left the line and has no fiber, until a cancel in this thread has come to that
  # line.
  # @return [Integer] how often the task has heard of the cancel
  def cancels_heard(line)
    heard = 0
    held = go = false
    run = Heddle.start(backend: backend) { sleep }
    start = TracePoint.new(:line) do |trace|
      (held = true) && (Thread.pass until go) unless held || trace.self.instance_variable_get(:@in_line)
    end
    start.enable(target: Heddle.const_get(:LateTask).instance_method(:start_from_line))
    task = run.spawn do
      [20, 0.05].each do |seconds|
        sleep(seconds)
      rescue Heddle::Cancelled
        heard += 1
      end
    end
    Thread.pass until held
    method = Heddle::Task.instance_method(:raise_into)
    cancel = TracePoint.new(:line) do |trace|
      (go = true) && sleep(0.02) if trace.lineno == method.source_location[1] + line
    end
    cancel.enable(target: method) { task.cancel }
    go = true
    task.wait
    heard
  ensure
    start.disable
    run.stop
  end

  def supervise(workers)
    raise IOError
  rescue IOError
    workers << Heddle.spawn { sleep }
  end
end
