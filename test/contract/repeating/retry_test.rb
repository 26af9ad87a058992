# frozen_string_literal: true

require_relative "../../test_helper"
require "timeout"

# Heddle.retry: again after an error, with growing pauses, and never beyond the end of the caller.
contract "Retry" do
  heddle_only "Heddle.retry"

  # Runs the block in a task and in a thread without Heddle.
  def everywhere
    Heddle.run(backend:) { yield }
    yield
  end

  # Fails with each of the errors, then succeeds. Returns the value, or the error, and the numbers of the attempts.
  def attempts_of(*errors, **options)
    attempts = []
    value = Heddle.retry(base: 0.001, **options) do |attempt|
      attempts << attempt
      error = errors.shift
      error ? raise(error) : :value
    end
    [value, attempts]
  rescue StandardError => e
    [e, attempts]
  end

  # The pauses that it makes instead of sleeping.
  def pauses_of(count, **options)
    pauses = []
    retrying = Heddle.const_get(:Retrying).new(on: IOError, attempts: count + 1, base: 0.1, max: 10, jitter: true,
                                               wait: nil, reset_after: nil, **options)
    retrying.define_singleton_method(:sleep) { |seconds| pauses << seconds }
    assert_raises(IOError) { retrying.call { raise IOError } }
    pauses
  end

  def test_until_it_succeeds
    everywhere do
      assert_equal([:value, [1]], attempts_of)
      assert_equal([:value, [1, 2, 3]], attempts_of(IOError, KeyError))
      assert_equal([:value, (1..8).to_a], attempts_of(*[IOError] * 7, attempts: nil))
    end
  end

  def test_until_all_attempts_are_used_up
    everywhere do
      errors = Array.new(5) { |number| IOError.new(number.to_s) }
      error, attempts = attempts_of(*errors)

      assert_same(errors.last, error)
      assert_equal([1, 2, 3, 4, 5], attempts)
      assert_equal(errors[..3], error.suppressed)
      assert_match(/also failed: 2 \(IOError\)/, error.detailed_message)
      assert_match(/#{Regexp.escape(__FILE__)}/, error.backtrace.first)
      assert_nil(error.cause)
    end
  end

  def test_one_attempt_and_the_same_error_again
    everywhere do
      same = IOError.new("same")

      assert_equal([same, [1]], attempts_of(same, attempts: 1))
      assert_equal([same, [1, 2, 3]], attempts_of(same, same, same, attempts: 3))
      assert_equal([same.freeze, [1, 2]], attempts_of(same, same, attempts: 2))
    end
  end

  def test_only_after_errors_that_are_named
    everywhere do
      assert_kind_of(KeyError, attempts_of(IOError, KeyError, on: IOError).first)
      assert_equal([:value, [1, 2, 3]], attempts_of(IOError, KeyError, on: [IOError, KeyError]))
      assert_equal([:value, [1, 2]], attempts_of(Errno::ECONNRESET, on: SystemCallError))
      assert_equal([:value, [1, 2]], attempts_of(IOError, on: ->(error) { error.message == "IOError" }))
    end
  end

  def test_pauses_grow_up_to_a_limit
    assert_equal([0.1, 0.2, 0.4, 0.8, 1, 1], pauses_of(6, jitter: false, max: 1))
    assert_equal([0, 0], pauses_of(2, base: 0))
    assert_equal(10, pauses_of(2000, base: 1e-9, jitter: false).last)
  end

  def test_a_pause_is_a_random_part_of_its_length
    pauses = pauses_of(500, max: 0.1)

    assert_operator(pauses.uniq.size, :>, 450)
    assert_operator(pauses.max, :<=, 0.1)
    assert_operator(pauses.min, :<, 0.02)
    assert_operator(pauses.max, :>, 0.08)
  end

  def test_pauses_that_the_caller_sets
    assert_equal([0.5, 0.5], pauses_of(2, wait: 0.5))
    assert_equal([1, 2, 3], pauses_of(3, wait: ->(_error, attempt) { attempt }))
    seconds = [60, -5]

    assert_equal([60, 0], pauses_of(2, wait: -> { seconds.shift }))
    assert_equal([0.1, 0.2], pauses_of(2, wait: ->(error) { error.is_a?(KeyError) ? 1 : nil }, jitter: false))
    assert_equal([7], pauses_of(1, wait: proc { |error| error.message.size }))
  end

  def test_other_tasks_run_during_a_pause
    log = []
    Heddle.run(backend:) do
      Heddle.retry(wait: 0.05) do |attempt|
        log << attempt
        break if attempt == 2

        Heddle.spawn { log << :other }
        raise(IOError)
      end
    end

    assert_equal([1, :other, 2], log)
  end

  def test_it_never_waits_beyond_a_deadline
    attempts = 0
    Heddle.run(backend:) do
      error = assert_raises(IOError) do
        Heddle.scope(deadline: 20) { Heddle.retry(wait: 60) { (attempts += 1) && raise(IOError, attempts.to_s) } }
      end

      assert_equal("1", error.message)
      assert_raises(IOError) { Heddle.timeout(20) { Heddle.map([1]) { Heddle.retry(wait: 60) { raise IOError } } } }
    end
    assert_raises(IOError) { Heddle.timeout(20) { Heddle.retry(wait: 60) { raise IOError } } }
  end

  def test_limits_in_it_and_around_it
    everywhere do
      calls = 0
      error = assert_raises(Timeout::Error) do
        Heddle.retry(attempts: 3, base: 0) { Timeout.timeout(0.001) { (calls += 1) && sleep } }
      end

      assert_equal([3, 2], [calls, error.suppressed.size])
      calls = 0
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.02) { Heddle.retry(on: Exception, attempts: nil, base: 0) { (calls += 1) && sleep } }
      end

      assert_equal(1, calls)
    end
  end

  # -- cancels ----------------------------------------------------------------------------------------------------

  # Cancels a task while it is in the block.
  def cancelled(attempts)
    Heddle.retry { true } # loads what it needs, which may wait for the disk
    Heddle.run(backend:) do
      task = Heddle.spawn(isolated: true) do
        Heddle.retry(on: Exception, attempts: nil, wait: 0) { |attempt| (attempts << attempt) && yield }
      end
      task.cancel.wait
    end
  end

  def test_a_cancel_of_an_attempt
    attempts = []

    assert_predicate(cancelled(attempts) { sleep }, :cancelled?)
    assert_equal([1], attempts)
  end

  # The errors of former attempts do not come out of a scope that ends early, whatever its block does just then.
  def test_a_scope_that_ends_in_a_later_attempt
    again = ->(last) { Heddle.retry(attempts: nil, base: 0) { |attempt| attempt < 3 ? raise(IOError) : last.call } }
    late = ->(scope) { (scope.deadline = 0) && sleep }
    scopes = [
      -> { Heddle.scope { |scope| again.call(-> { scope.cancel }) } },
      -> { Heddle.scope { |scope| again.call(-> { scope.spawn { scope.cancel } && sleep }) } },
      -> { Heddle.move_on_after(60) { |scope| again.call(-> { late.call(scope) }) } },
      -> { Heddle.move_on_after(60) { |scope| scope.spawn { again.call(-> { late.call(scope) }) } && sleep } }
    ]

    everywhere { assert_equal([nil] * 4, scopes.map(&:call)) }
    error = assert_raises(Heddle::TimeoutError) do
      Heddle.scope(deadline: 60) { |scope| again.call(-> { late.call(scope) }) }
    end

    assert_empty(error.suppressed)
  end

  def test_a_cancel_during_a_pause
    task = nil
    Heddle.run(backend:) do
      task = Heddle.spawn { Heddle.retry(wait: 60) { raise IOError } }
      sleep(0.01)
      task.cancel
    end

    assert_predicate(task, :cancelled?)
    assert_nil(task.error.cause)
  end

  # A client library may raise an error of its own instead of the cancel.
  def test_an_error_that_hides_a_cancel
    attempts = []
    task = cancelled(attempts) do
      sleep
    rescue Exception
      raise IOError, "the connection is broken"
    end

    assert_kind_of(IOError, task.error)
    assert_equal([1], attempts)
  end

  def test_the_cancel_of_another_task
    Heddle.run(backend:) do
      other = Heddle.spawn { sleep }.cancel.wait
      calls = 0
      Heddle.retry(attempts: 3, base: 0) do
        calls += 1
        begin
          other.value
        rescue Heddle::Cancelled
          raise IOError if calls < 3
        end
      end

      assert_equal(3, calls)
    end
  end

  def test_what_is_meant_for_the_program
    [SystemExit, Interrupt, NoMemoryError].each do |kind|
      calls = 0
      assert_raises(kind) { Heddle.retry(on: Exception, base: 0) { (calls += 1) && raise(kind, "own") } }
      assert_equal(1, calls)
    end
  end

  # -- tasks that are started anew --------------------------------------------------------------------------------

  def test_an_attempt_that_lasts_counts_as_the_first
    attempts = []
    assert_raises(IOError) do
      Heddle.retry(attempts: 3, base: 0, reset_after: 0.05) do |attempt|
        attempts << attempt
        sleep(0.06) if attempts.size == 2
        raise IOError
      end
    end

    assert_equal([1, 2, 2, 3], attempts)
  end

  def test_as_long_as_its_scope_lives
    attempts = 0
    Heddle.run(backend:) do
      Heddle.scope do |scope|
        scope.spawn do
          Heddle.retry(attempts: nil, base: 0.001, max: 0.001, reset_after: 60) do
            scope.cancel if (attempts += 1) == 20
            raise IOError
          end
        end
      end
    end

    assert_equal(20, attempts)
  end

  def test_only_the_last_errors_are_kept
    error = assert_raises(KeyError) do
      Heddle.retry(on: IOError, attempts: nil, base: 0) { |attempt| raise attempt > 300 ? KeyError : IOError }
    end

    assert_equal(100, error.suppressed.size)
  end

  def test_what_leaves_the_block
    assert_equal(:broken, Heddle.retry { break :broken })
    assert_equal(:thrown, catch(:out) { Heddle.retry { throw :out, :thrown } })
    assert_raises(StopIteration) { Heddle.retry(on: IOError) { raise StopIteration } }
  end

  def test_what_is_asked_wrongly
    { on: [nil, "IOError", [IOError, :x]], attempts: [0, -1, 1.5, "2"], base: [-1, nil, "1", 1e300, Float::NAN],
      max: [-1, nil, 1i], jitter: [nil, 0.5, "yes"], wait: ["1", -1, :x], reset_after: [0, -1, "1"] }
      .each do |option, values|
        values.each do |wrong|
          error = assert_raises(ArgumentError) { Heddle.retry(option => wrong) { flunk } }

          assert_match(/\A#{option}: must be/, error.message)
        end
      end
    assert_raises(ArgumentError) { Heddle.retry }
    error = assert_raises(ArgumentError) { Heddle.retry(wait: -> { "soon" }) { raise IOError } }

    assert_match(/\Await: must be/, error.message)
  end
end
