# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.settle: all tasks end, each by itself.
contract "Settle" do
  heddle_only "Heddle.settle"

  def test_ended_tasks_in_the_order_of_the_items
    tasks = run { Heddle.settle([3, 0, 1], limit: 3) { |x| sleep(0.002 * x) && (6 / x) } }

    assert(tasks.all?(Heddle::Task))
    assert(tasks.all?(&:finished?))
    assert_equal([nil, ZeroDivisionError, nil], tasks.map { |task| task.error&.class })
    assert_equal([2, 6], tasks.reject(&:error).map(&:value))
    assert_raises(ZeroDivisionError) { tasks[1].value }
  end

  def test_a_run_of_its_own
    assert_equal([1, nil], Heddle.settle([1, 0]) { |x| 1 / x }.map { |task| task.value unless task.error })
    assert_nil(Fiber.scheduler)
  end

  def test_nobody_is_cancelled
    ended = []
    tasks = run do
      other = Heddle.spawn { sleep(0.01) && :fine }
      tasks = Heddle.settle(1..20, limit: 4) { |x| x.odd? ? raise(IOError) : sleep(0.001) && (ended << x) }

      assert_equal(:fine, other.value)
      tasks
    end

    assert_equal(10, ended.size)
    assert_equal(10, tasks.count { |task| task.error.is_a?(IOError) })
  end

  def test_the_limit
    running = most = 0
    run do
      Heddle.settle(1..30, limit: 4) do |x|
        most = [most, running += 1].max
        sleep(0.001)
        raise IOError if x.odd?
      ensure
        running -= 1
      end
    end

    assert_equal(4, most)
  end

  def test_the_limit_counts_those_whose_tasks_still_run
    running = most = 0
    run do
      Heddle.settle(1..6, limit: 2) do
        most = [most, running += 1].max
        Heddle.spawn { sleep(0.002) && running -= 1 }
      end
    end

    assert_equal(2, most)
  end

  def test_what_an_item_spawns_belongs_to_it
    ended = 0
    tasks = run do
      Heddle.settle([1, 2], limit: 1) do |x|
        Heddle.spawn { sleep(0.005) && x == 1 ? raise(IOError) : ended += 1 }
        :value
      end
    end

    assert_equal([IOError, nil], tasks.map { |task| task.error&.class })
    assert_equal(1, ended)
  end

  def test_cancelled_and_killed_items
    tasks = run do
      Heddle.settle(1..3) do |x|
        [-> { sleep(0.001) }, -> { raise Heddle::Cancelled }, -> { Fiber.current.kill }][x - 1].call
      end
    end

    assert_equal([nil, Heddle::Cancelled, Heddle::Cancelled], tasks.map { |task| task.error&.class })
  end

  def test_what_is_meant_for_the_program_is_raised
    [SystemExit, Interrupt, NoMemoryError].each do |kind|
      ended = false
      assert_raises(kind) do
        run do
          Heddle.settle([1, 2]) do |x|
            x == 1 ? sleep : raise(kind)
          ensure
            ended = true if x == 1
          end
        end
      end

      assert(ended)
    end
  end

  def test_a_cancel_from_outside
    ended = []
    run do
      task = Heddle.spawn do
        Heddle.settle(1.., limit: 2) do |x|
          sleep
        ensure
          ended << x
        end
      end
      task.cancel.wait
    end

    assert_equal([1, 2], ended)
  end

  def test_an_input_that_fails
    items = Enumerator.new { |to| (to << 1) && raise(IOError, "no more") }

    assert_raises(IOError) { run { Heddle.settle(items) { sleep } } }
  end

  def test_progress
    told = []
    progress = ->(done) { told << done }
    run { Heddle.settle([3, 0, 2, 1], limit: 3, progress:) { |x| sleep(0.001 * x) && (6 / x) } }
    Heddle.settle([0], progress:) { |x| 6 / x }

    assert_equal([1, 2, 3, 4, 1], told)
    assert_match(/\Aprogress: /, assert_raises(ArgumentError) { Heddle.settle([1], progress: 2) { flunk } }.message)
  end

  def test_progress_comes_when_what_an_item_spawns_has_ended
    log = []
    run { Heddle.settle([1], progress: ->(_) { log << :told }) { Heddle.spawn { log << :ended if sleep(0.001) } } }

    assert_equal(%i[ended told], log)
  end

  def test_a_progress_that_fails
    tasks = run { Heddle.settle([1, 0], limit: 1, progress: ->(done) { raise IOError, done.to_s }) { |x| 6 / x } }

    assert_equal([[IOError, "1"], [IOError, "2"]], tasks.map { |task| [task.error.class, task.error.message] })
    assert_equal([nil, ZeroDivisionError], tasks.map { |task| task.error.cause&.class })
  end

  def test_no_progress_of_items_that_are_given_up
    told = []
    assert_raises(SystemExit) do
      run { Heddle.settle([-> {}, -> { sleep }, -> { exit }], progress: ->(done) { told << done }, &:call) }
    end

    assert_equal([1], told)
  end

  def test_a_limit_of_zero
    assert_match(/limit/, assert_raises(ArgumentError) { Heddle.settle([1], limit: 0) { nil } }.message)
  end

  # Linux allows a process about 32,000 stacks of fibers.
  def test_ended_tasks_keep_no_stack
    tasks = run { Heddle.settle(1..40_000, limit: 100) { |x| x } }

    assert_equal(40_000, tasks.last.value)
  end
end
