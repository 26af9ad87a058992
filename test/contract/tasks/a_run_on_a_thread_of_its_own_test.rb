# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.start: a run on a thread of its own, with a handle for all threads.
contract "Start" do
  heddle_only "Heddle.start"

  def start(**, &) = Heddle.start(backend:, **, &)

  def test_the_value
    run_of_it = start(name: "mine") do
      Heddle.spawn { sleep(0.001) && [Thread.current.name, Fiber.scheduler.backend] }.value
    end

    assert_equal(["mine", backend], run_of_it.value)
    assert_equal(["mine", backend], run { run_of_it.value }, "in a task, and once more")
    assert_equal("#<Heddle::Run mine ended>", run_of_it.inspect)
    refute_predicate(run_of_it, :alive?)
  end

  def test_the_error
    error = IOError.new("down")
    failing = start { sleep(0.001) && raise(error) }

    assert_same(error, assert_raises(IOError) { failing.value })
    assert_same(failing, failing.wait)
  end

  def test_an_error_that_nobody_asks_for_is_reported
    reported = Thread::Queue.new
    Heddle.on_error { |error, task| reported << [error.message, task.class] }
    start { raise IOError, "down" }

    assert_equal(["down", Heddle::Task], reported.pop)
    start { sleep }.stop

    assert_empty(reported, "a stop is no error")
  ensure
    Heddle.on_error(nil)
  end

  def test_a_stop_ends_the_block_and_the_tasks
    [true, false].each do |in_block|
      ended = []
      one = start do
        Heddle.spawn do
          sleep
        ensure
          sleep(0.001) && (ended << :task)
        end
        sleep if in_block
      ensure
        ended << :block
      end

      assert_nil(one.wait(0.01))
      assert_same(one, in_block ? run { Heddle.spawn { one.stop(:enough) }.value } : one.stop(:enough))
      assert_equal(%i[block task], ended.sort)
      assert_equal(:enough, assert_raises(Heddle::Cancelled) { one.value }.reason)
      assert_same(one, one.stop, "it has ended")
    end
  end

  def test_a_stop_in_the_run_itself
    handle = Thread::Queue.new
    itself = start { handle.pop.stop && sleep }
    handle << itself

    assert_raises(Heddle::Cancelled) { itself.value }
  end

  # Nobody gets the run of a start that is cancelled, so it ends.
  def test_a_cancel_meanwhile
    start { nil }.wait # the first one loads Heddle::Run, and a cancel may end that
    ended = Thread::Queue.new
    run do
      task = Heddle.spawn do
        start do
          sleep
        ensure
          ended << true
        end
      end
      task.cancel.wait
      task.value.stop unless task.cancelled? # it has begun before the cancel

      assert(ended.pop)
    end
  end

  def test_it_cannot_wait_for_itself
    handle = Thread::Queue.new
    one = start { Heddle.spawn { handle.pop.value }.value }
    handle << one

    assert_match(/its own end/, assert_raises(Heddle::Error) { one.value }.message)
  end

  def test_tasks_from_any_thread
    gate = Thread::Queue.new
    one = start { gate.pop }
    tasks = [one.spawn(4, name: "four") { |x| [x, Thread.current] }, run { one.spawn { [5, Thread.current] } }]

    assert_equal([4, 5], tasks.map { |task| task.value.first })
    assert_equal(1, tasks.map { |task| task.value.last }.uniq.size)
    refute_same(Thread.current, tasks.first.value.last)
    gate.close
    one.wait

    assert_match(/has ended/, assert_raises(Heddle::Error) { one.spawn { nil } }.message)
  end

  def test_an_exit_in_it_ends_the_program
    outcome = run_command(*ruby_command, "-r", "heddle", "-e", "Heddle.start { exit 3 }; sleep",
                          env: { "HEDDLE_BACKEND" => backend })

    assert_equal(3, outcome.status.exitstatus)
  end

  def test_in_the_child_of_a_fork
    one = start { sleep }
    pid = fork { exit!(begin; one.value; rescue Heddle::Error; 7; end) }

    assert_equal(7, Process.wait2(pid).last.exitstatus)
    one.stop
  end

  def test_arguments
    assert_match(/Heddle.start needs a block/, assert_raises(ArgumentError) { Heddle.start }.message)
    assert_match(/\Aname: /, assert_raises(ArgumentError) { Heddle.start(name: 7) { nil } }.message)
    assert_match(/\Agrace: /, assert_raises(ArgumentError) { Heddle.start(grace: -1) { nil } }.message)
    assert_match(/\Abackend: /, assert_raises(ArgumentError) { Heddle.start(backend: "none") { nil } }.message)
    assert_match(/\Atimeout: /, assert_raises(ArgumentError) { start { nil }.tap(&:value).wait("1") }.message)
    assert_match(/#spawn needs a block/, assert_raises(ArgumentError) { start { nil }.tap(&:value).spawn }.message)
  end
end
