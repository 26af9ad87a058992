# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.every: again and again, in the background.
contract "Every" do
  heddle_only "Heddle.every"

  def test_it_ends_with_its_scope
    times = []
    started = now
    task = run do
      task = Heddle.every(0.02) { times << (now - started) }
      sleep(0.01) while times.size < 3
      task
    end

    assert_predicate(task, :cancelled?)
    assert_equal("every 0.02 s", task.name)
    times.each.with_index(1) { |time, number| assert_operator(time, :>=, 0.02 * number) }
  end

  def test_the_first_call_is_after_the_first_interval
    called = false
    run { Heddle.every(1000) { called = true } && sleep(0.01) }

    refute(called)
  end

  def test_an_interval_shorter_than_any_call_holds_nobody_up
    calls = 0
    run { Heddle.every(1e-9) { calls += 1 } && sleep(0.01) }

    assert_operator(calls, :>, 0)
  end

  # With a sleep of the whole interval after each call, every other one would be half of an interval off. Some are late
  # on a busy machine.
  def test_it_does_not_drift
    in_time(0.1, 0.5, 2.0, 10.0) do |interval|
      times = []
      run do
        Heddle.every(interval) { (times << now) && sleep(interval / 2) }
        sleep(interval / 10) while times.size < 7
      end
      rests = times.map { |time| (time - times.first).remainder(interval) }
      rests.count { |rest| [rest, interval - rest].min > 0.3 * interval } <= 1
    end
  end

  def test_it_does_not_overlap_and_leaves_out_what_it_missed
    running = most = 0
    in_time(0.02, 0.2, 1.0, 10.0) do |interval|
      times = []
      run do
        Heddle.every(interval) do
          times << now
          most = [most, running += 1].max
          sleep(2.5 * interval)
        ensure
          running -= 1 # also when it is cancelled with its scope
        end
        sleep(interval / 2) while times.size < 4
      end
      times.each_cons(2).all? { |before, after| after - before > 2.75 * interval }
    end

    assert_equal(1, most)
  end

  def test_its_error_is_one_of_the_scope
    error = assert_raises(IOError) { run { Heddle.every(0.001) { raise IOError, "own" } && sleep } }

    assert_equal("own", error.message)
  end

  def test_cancel
    count = 0
    run do
      task = Heddle.every(0.001) { count += 1 }
      sleep(0.001) while count < 2
      task.cancel.wait
      at_end = count
      sleep(0.01)

      assert_equal(at_end, count)
    end
  end

  # -- options ----------------------------------------------------------------------------------------------------

  def test_the_first_turn
    log = []
    run do
      Heddle.every(1000, first: :now) { log << :now }
      log << :goes_on
      Heddle.every(1000, first: 0) { log << :none }
      Heddle.every(1000, first: 0.01) { log << :soon }
      sleep(0.001) while log.size < 4
    end

    assert_equal(%i[now goes_on none soon], log)
  end

  def test_turns_after_one_at_once
    times = []
    started = now
    run do
      Heddle.every(0.02, first: :now) { times << (now - started) }

      assert_equal(1, times.size)
      sleep(0.005) while times.size < 3
    end

    times.each_with_index { |time, number| assert_operator(time, :>=, 0.02 * number) }
  end

  def test_missed_turns_are_counted
    counts = []
    started = now
    run do
      Heddle.every(0.02) do |missed|
        counts << missed
        sleep(0.07) if counts.size == 1
      end
      sleep(0.005) while counts.size < 3
    end

    assert_equal(0, counts.first)
    assert_operator(counts[1], :>=, 2)
    assert_operator(0.02 * (counts.sum + counts.size), :<=, now - started)
  end

  def test_a_lambda_need_not_take_the_number
    log = []
    run do
      Heddle.every(0.001, first: :now, &-> { log << :called })
      sleep(0.001) while log.size < 2
    end

    assert_equal(%i[called called], log.first(2))
  end

  def test_turns_that_queue
    log = []
    run do
      running = 0
      Heddle.every(0.01, overlap: :queue) do |missed|
        running += 1
        log << [missed, running]
        sleep(0.05) if log.size == 1
        running -= 1
      end
      sleep(0.001) while log.empty?
      sleep(0.1)
    end

    assert_equal([[0, 1]], log.uniq)
    assert_operator(log.size, :>=, 6) # as many as without the first, which took long
  end

  def test_turns_that_run_at_the_same_time
    ended = 0
    most = running = 0
    task = run do
      task = Heddle.every(0.005, overlap: :concurrent) do
        most = [most, running += 1].max
        sleep(20)
      ensure
        running -= 1
        ended += 1
      end
      sleep(0.001) while most < 3
      task.cancel.wait
      sleep(0.001) until running.zero?
      task
    end

    assert_predicate(task, :cancelled?)
    assert_operator(ended, :>=, 3)
  end

  def test_concurrent_turns_end_with_the_scope
    running = 0
    run do
      Heddle.every(0.001, overlap: :concurrent) do
        running += 1
        sleep
      ensure
        running -= 1
      end
      sleep(0.001) while running < 2
    end

    assert_equal(0, running)
    assert_raises(IOError) { run { Heddle.every(0.001, overlap: :concurrent) { raise IOError } && sleep } }
  end

  # Eight turns that are all nearly in time would be a chance of one in a million.
  def test_jitter
    late = []
    turn = 0
    started = now
    run do
      Heddle.every(0.02, jitter: 1) do |missed|
        turn += missed + 1
        late << (((now - started) / 0.02) - turn)
      end
      sleep(0.005) while late.size < 8
    end

    assert_operator(late.min, :>=, 0)
    assert_operator(late.max, :>, 0.2)
  end

  def test_outside_of_a_run
    assert_match(/Heddle\.run/, assert_raises(Heddle::Error) { Heddle.every(1) { nil } }.message)
  end

  def test_what_is_asked_wrongly
    [0, -1, nil, "1", Float::NAN, 1i, Float::INFINITY, 1e300, 10**400, 1e-320, 1.quo(10**400)].each do |wrong|
      assert_match(/\Aseconds: must be .{,150}\z/, assert_raises(ArgumentError) { Heddle.every(wrong) { nil } }.message)
    end
    assert_raises(ArgumentError) { Heddle.every(1) }
    { first: [:later, -1, "1", Float::INFINITY], jitter: [true, nil, -0.1, 1.1, "0.1"], overlap: [nil, :wait, "skip"] }
      .each do |option, values|
        values.each do |wrong|
          error = assert_raises(ArgumentError) { run { Heddle.every(1, option => wrong) { nil } } }

          assert_match(/\A#{option}: must be/, error.message)
        end
      end
  end
end
