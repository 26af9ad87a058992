# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle::Scope#spawn in another thread than that of the scope.
contract "ThreadsSpawn" do
  heddle_only "Heddle.scope"

  # Runs the block in another thread, while the scope waits.
  def from_thread(scope, &) = Thread.new { yield(scope) }.tap { |thread| (@threads ||= []) << thread }

  def teardown
    @threads&.each(&:join)
    super
  end

  def test_it_runs_in_the_thread_of_the_scope
    run do
      Heddle.scope do |scope|
        got = Thread::Queue.new
        from_thread(scope) do |one|
          got << one.spawn(1, 2, name: "mine") { |*given| sleep(0.001) && [given, Thread.current] }
        end
        task = got.pop

        assert_equal([[1, 2], Thread.current], task.value)
        assert_equal("mine", task.name)
      end
    end
  end

  # The thread of the scope sleeps in the kernel, or its tasks never wait.
  def test_it_starts_while_the_others_sleep_or_take_turns
    [-> { sleep(20) }, -> { 1.step { sleep(0) } }].each do |busy|
      run do
        Heddle.scope do |scope|
          work = scope.spawn(&busy)
          from_thread(scope) { |one| one.spawn { work.cancel } }
        end
      end
    end
  end

  def test_the_value_comes_to_the_thread
    run do
      Heddle.scope do |scope|
        thread = from_thread(scope) { |one| one.spawn { sleep(0.001) && :value }.value }

        assert_same(:value, thread.value)
        failing = from_thread(scope) { |one| one.spawn(isolated: true) { raise IOError, "down" }.wait.error.message }

        assert_equal("down", failing.value)
      end
    end
  end

  def test_the_scope_waits_for_it_and_fails_with_it
    ended = []
    error = assert_raises(IOError) do
      run do
        Heddle.scope do |scope|
          other = scope.spawn { sleep }
          from_thread(scope) { |one| one.spawn { (ended << :task) && raise(IOError, "down") } }.join
          other.wait
        end
      end
    end

    assert_equal(["down", [:task]], [error.message, ended])
  end

  def test_an_isolated_one_is_reported
    reported = Thread::Queue.new
    Heddle.on_error { |error, task| reported << [error.message, task.name] }
    run do
      Heddle.scope { |scope| from_thread(scope) { |one| one.spawn(name: "one", isolated: true) { raise "down" } }.join }
    end

    assert_equal(%w[down one], reported.pop)
  ensure
    Heddle.on_error(nil)
  end

  def test_background_tasks_and_storage
    seen = nil
    run do
      Heddle.scope do |scope|
        thread = from_thread(scope) do |one|
          Fiber[:request] = 7
          one.spawn(background: true) { (seen = Fiber[:request]) && sleep }
        end
        sleep(0.001) until seen
        thread.join
      end
    end

    assert_equal(7, seen)
  end

  # The thread of the scope computes: the task has not started when it is cancelled.
  def test_a_cancel_before_its_start
    run do
      Heddle.scope do |scope|
        got = Thread::Queue.new
        from_thread(scope) { |one| got << one.spawn { flunk }.cancel(:late) }
        Thread.pass while got.empty?
        task = got.pop

        assert_predicate(task.wait, :cancelled?)
        assert_equal(:late, task.error.reason)
      end
    end
  end

  def test_many_threads
    run do
      Heddle.scope do |scope|
        values = Thread::Queue.new
        threads = Array.new(4) do |i|
          from_thread(scope) do |one|
            Array.new(50) { |n| one.spawn { sleep(0) && (values << ((i * 50) + n)) } }.each(&:wait)
          end
        end
        threads.each(&:join)

        assert_equal((0...200).to_a, Array.new(values.size) { values.pop }.sort)
      end
    end
  end

  # A scope that ends meanwhile refuses the task, or waits for it.
  def test_the_end_of_the_scope
    100.times do
      started = 0
      tasks = []
      run do
        Heddle.scope do |scope|
          from_thread(scope) do |one|
            while true # rubocop:disable Style/InfiniteLoop -- until the scope has ended
              tasks << one.spawn { started += 1 }
            end
          rescue Heddle::Error
            nil
          end
          sleep(0)
        end
      end
      @threads.each(&:join)
      tasks.each(&:wait)

      assert_equal(started, tasks.count { |task| task.status == :finished })
    end
  end

  def test_in_the_child_of_a_fork
    run do
      Heddle.scope do |scope|
        pid = fork { exit!(begin; scope.spawn { nil }; rescue Heddle::Error; 7; end) }

        assert_equal(7, Process.wait2(pid).last.exitstatus)
        thread = from_thread(scope) do |one|
          Process.wait2(fork { exit!(begin; one.spawn { 1 }; rescue Heddle::Error; 8; end) })
        end

        assert_equal(8, thread.value.last.exitstatus)
      end
    end
  end
end
