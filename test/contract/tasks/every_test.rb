# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.every: again and again, in the background.
contract "Every" do
  def setup
    super
    heddle_only("Heddle.every")
  end

  def run(*, &block)
    return super unless block

    Heddle.run(backend: backend, &block)
  end

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

  # With a sleep of the whole interval after each call, every other one would be 0.05 s off.
  def test_it_does_not_drift
    times = []
    run do
      Heddle.every(0.1) { (times << now) && sleep(0.05) }
      sleep(0.01) while times.size < 7
    end
    off = times.map { |time| (time - times.first).remainder(0.1) }.map { |rest| [rest, 0.1 - rest].min }

    assert_operator(off.count { |seconds| seconds > 0.03 }, :<=, 1, off.inspect)
  end

  def test_it_does_not_overlap_and_leaves_out_what_it_missed
    running = most = 0
    times = []
    started = now
    run do
      Heddle.every(0.02) do
        times << ((now - started) / 0.02).floor
        most = [most, running += 1].max
        sleep(0.05)
        running -= 1
      end
      sleep(0.01) while times.size < 4
    end

    assert_equal(1, most)
    assert_equal(times.uniq, times)
    times.each_cons(2) { |before, after| assert_operator(after - before, :>=, 3) }
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
    [0, -1, nil, "1", Float::INFINITY, Float::NAN].each do |seconds|
      assert_match(/seconds/, assert_raises(ArgumentError) { Heddle.every(seconds) { nil } }.message)
    end
    assert_raises(ArgumentError) { Heddle.every(1) }
  end
end
