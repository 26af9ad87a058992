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

  # With a sleep of the whole interval after each call, every other one would be half of an interval off. (Some are
  # late on a busy machine.)
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

  def test_outside_of_a_run
    assert_match(/Heddle\.run/, assert_raises(Heddle::Error) { Heddle.every(1) { nil } }.message)
  end

  def test_what_is_asked_wrongly
    [0, -1, nil, "1", Float::NAN, 1i, Float::INFINITY, 1e300, 10**400, 1e-320, 1.quo(10**400)].each do |wrong|
      assert_match(/\Aseconds: must be .{,150}\z/, assert_raises(ArgumentError) { Heddle.every(wrong) { nil } }.message)
    end
    assert_raises(ArgumentError) { Heddle.every(1) }
  end
end
