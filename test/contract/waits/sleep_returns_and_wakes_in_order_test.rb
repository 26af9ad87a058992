# frozen_string_literal: true

require_relative "../../test_helper"

# Kernel#sleep: what it returns, what it rejects, in which order sleepers wake.
contract "Sleep" do
  # Ruby counts ticks of the clock's seconds: a short sleep may cross one.
  def test_returns_whole_seconds
    reactor do
      assert_includes([0, 1], sleep(0.01))
      assert_includes([0, 1], sleep(0))
      assert_includes([1, 2], sleep(1.05))
    end
  end

  def test_is_never_early
    reactor do
      [0.001, 0.01, 0.05, 0.1, Rational(1, 50)].each do |duration|
        assert_operator(elapsed { sleep(duration) }, :>=, duration)
      end
    end
  end

  def test_takes_every_kind_of_number
    reactor do
      [0, 0.0, Rational(1, 1000), 1e-9].each { |duration| assert_kind_of(Integer, sleep(duration)) }
    end
  end

  def test_zero_returns
    reactor { 100.times { sleep(0) } }
  end

  def test_zero_lets_others_run
    heddle_only("threads switch when they like")
    order = []
    reactor do
      a = go { 3.times { |i| (order << "a#{i}") && sleep(0) } }
      b = go { 3.times { |i| (order << "b#{i}") && sleep(0) } }
      [a, b].each(&:value)
    end

    assert_equal(%w[a0 b0 a1 b1 a2 b2], order)
  end

  def test_negative_is_an_argument_error
    reactor do
      assert_raises(ArgumentError) { sleep(-1) }
      assert_raises(ArgumentError) { sleep(-0.001) }
      assert_raises(ArgumentError) { sleep(Rational(-1, 2)) }
    end
  end

  def test_not_a_number_is_a_type_error
    reactor do
      assert_raises(TypeError) { sleep("x") }
      assert_raises(TypeError) { sleep([]) }
      assert_raises(TypeError) { sleep(false) }
    end
  end

  def test_float_extremes
    reactor do
      assert_raises(FloatDomainError, RangeError) { sleep(Float::NAN) }
      assert_raises(ArgumentError) { sleep(-Float::INFINITY) }
      [Float::INFINITY, 1e30].each { |seconds| assert_raises(RangeError) { sleep(seconds) } }
    end
  end

  # Since Ruby 3.3 nil means "for ever".
  { "nil" => [nil], "without_argument" => [] }.each do |name, arguments|
    define_method("test_#{name}_sleeps_until_it_is_interrupted") do
      reactor do
        job = go do
          sleep(*arguments)
        rescue ZeroDivisionError
          :raised
        end
        settle

        refute_predicate(job, :finished?)
        reference? ? @threads.first.raise(ZeroDivisionError) : job.fiber.raise(ZeroDivisionError)

        assert_equal(:raised, job.value)
      end
    end
  end

  def test_wakes_in_order_of_time
    in_time(0.05, 0.5, 2.0, 10.0) do |seconds|
      order = []
      reactor { [4, 1, 7, 10].each { |number| go { sleep(number * seconds) && (order << number) } } }
      order == [1, 4, 7, 10]
    end
  end

  def test_sleepers_sleep_at_the_same_time
    taken = elapsed { reactor { 50.times { go { sleep(0.5) } } } }

    assert_operator(taken, :<, 24)
  end

  def test_a_very_long_sleep_can_be_ended
    [1e9, 1 << 40].each do |duration|
      reactor do
        job = go do
          sleep(duration)
        rescue ZeroDivisionError
          :raised
        end
        settle
        reference? ? @threads.last.raise(ZeroDivisionError) : job.fiber.raise(ZeroDivisionError)

        assert_equal(:raised, job.value)
      end
    end
  end
end
