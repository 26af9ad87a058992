# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle.race and Heddle.any: one of several is enough.
contract "RaceAndAny" do
  heddle_only "Heddle.race"

  def test_the_first_that_ends_wins
    run do
      assert_equal(:fast, Heddle.race(-> { sleep }, -> { sleep(0.005) && :fast }, -> { sleep(5) }))
      assert_equal(1, Heddle.race(-> { 1 }, -> { 2 }))
      assert_nil(Heddle.race(-> {}))
      assert_equal(3, Heddle.race(3.method(:itself)))
    end
  end

  def test_the_first_that_ends_may_fail
    run do
      error = assert_raises(IOError) { Heddle.race(-> { sleep }, -> { sleep(0.002) && raise(IOError, "own") }) }

      assert_equal("own", error.message)
      assert_nil(error.cause)
      assert_equal(1, Heddle.spawn { 1 }.value)
    end
  end

  def test_the_first_that_succeeds_wins
    run do
      assert_equal(:third, Heddle.any(-> { raise IOError }, -> { sleep(0.001) && raise(IOError) },
                                      -> { sleep(0.01) && :third }, -> { sleep }))
      assert_nil(Heddle.any(-> { raise IOError }, -> {}))
    end
  end

  def test_none_succeeds
    error = assert_raises(Heddle::NoneSucceeded) do
      run { Heddle.any(-> { sleep(0.005) && raise(IOError, "slow") }, -> { raise ArgumentError, "fast" }) }
    end

    assert_kind_of(Heddle::Error, error)
    assert_equal([IOError, ArgumentError], error.errors.map(&:class))
    assert_same(error.errors.first, error.cause)
    assert_match(/slow \(IOError\).*fast \(ArgumentError\)/, error.message)
  end

  def test_a_run_of_its_own
    assert_equal(2, Heddle.race(-> { sleep }, -> { sleep(0.001) && 2 }))
    assert_equal(2, Heddle.any(-> { raise IOError }, -> { sleep(0.001) && 2 }))
    assert_nil(Fiber.scheduler)
  end

  def test_the_losers_have_ended
    %i[race any].each do |form|
      ended = []
      loser = lambda do
        sleep
      ensure
        sleep(0.003)
        ended << :loser
      end
      run do
        assert_equal(:won, Heddle.public_send(form, loser, -> { sleep(0.001) && :won }, loser))
        assert_equal(%i[loser loser], ended)
      end
    end
  end

  def test_what_the_losers_spawn_ends_with_them
    ended = []
    run do
      loser = lambda do
        Heddle.spawn do
          sleep
        ensure
          ended << :spawned
        end
        sleep
      end

      assert_equal(:won, Heddle.race(loser, -> { sleep(0.001) && :won }))
      assert_equal([:spawned], ended)
    end
  end

  def test_what_a_callable_spawns_belongs_to_it
    run do
      spawning = -> { Heddle.spawn { sleep(0.001) && raise(IOError) } && :value }

      assert_equal(:other, Heddle.any(spawning, -> { sleep(0.01) && :other }))
      assert_raises(IOError) { Heddle.race(spawning, -> { sleep }) }
    end
  end

  def test_losers_that_fail_while_ending
    loser = lambda do
      sleep
    ensure
      raise IOError, "dropped"
    end

    assert_equal(1, run { Heddle.race(loser, -> { sleep(0.001) && 1 }) })
  end

  def test_one_that_ends_at_once_spares_the_others
    started = false

    assert_equal(1, run { Heddle.race(-> { 1 }, -> { started = true }) })
    refute(started)
  end

  def test_nested
    inner = -> { Heddle.any(-> { raise IOError }, -> { sleep(0.002) && :inner }) }

    assert_equal(:inner, run { Heddle.race(inner, -> { sleep }) })
  end

  def test_a_cancel_from_outside
    ended = []
    run do
      waiting = lambda do
        sleep
      ensure
        sleep(0.001)
        ended << true
      end
      task = Heddle.spawn { Heddle.race(waiting, waiting) }
      task.cancel.wait

      assert_predicate(task, :cancelled?)
    end

    assert_equal([true, true], ended)
  end

  def test_a_timeout_from_outside
    assert_raises(Timeout::Error) { run { Timeout.timeout(0.01) { Heddle.any(-> { sleep }, -> { raise IOError }) } } }
  end

  def test_one_whose_tasks_still_run_has_not_ended
    run do
      slow = -> { Heddle.spawn { sleep } && :slow }
      failing = -> { Heddle.spawn { sleep(0.001) && raise(IOError) } && :failing }

      assert_equal(:fast, Heddle.race(slow, -> { sleep(0.001) && :fast }))
      assert_equal(:fast, Heddle.any(failing, slow, -> { sleep(0.002) && :fast }))
    end
  end

  def test_a_killed_fiber
    run do
      killed = -> { Fiber.current.kill }

      assert_equal(1, Heddle.any(killed, -> { sleep(0.001) && 1 }))
      assert_raises(Heddle::Cancelled) { Heddle.race(killed, -> { sleep }) }
    end
  end

  def test_what_is_meant_for_the_program_is_raised
    assert_raises(SystemExit) { run { Heddle.any(-> { sleep }, -> { sleep(0.001) && exit }) } }
  end

  def test_what_is_asked_wrongly
    %i[race any].each do |form|
      assert_match(/\Acallables: /, assert_raises(ArgumentError) { Heddle.public_send(form) }.message)
      assert_match(/\Acallables: .*17/, assert_raises(ArgumentError) { Heddle.public_send(form, -> {}, 17) }.message)
      assert_match(/\Acallables: .*nil/, assert_raises(ArgumentError) { Heddle.public_send(form, -> {}, nil) }.message)
    end
  end
end
