# frozen_string_literal: true

require_relative "../../test_helper"

# A program's tests may stop Ruby's clocks (timecop does). What Heddle counts goes on.
contract "RubysClocksStandStill" do
  heddle_only "it is about Heddle's own clock"

  def setup
    super
    @clock = Process.method(:clock_gettime).unbind
    stopped = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    replace(->(*) { stopped })
  end

  def teardown
    replace(@clock) if @clock
    super
  end

  def replace(method)
    before = $VERBOSE
    $VERBOSE = nil # it is redefined on purpose
    Process.singleton_class.define_method(:clock_gettime, method)
  ensure
    $VERBOSE = before
  end

  def test_a_rate_limiter_lets_the_next_one_in
    limiter = Heddle::RateLimiter.new(1, per: 0.01)

    reactor { assert_equal(3, 3.times { limiter.acquire }) }
  end

  def test_every_calls_again
    calls = 0
    Heddle.run(backend: backend) do
      Heddle.every(0.01) { calls += 1 }
      sleep(0.005) until calls >= 3
    end

    assert_operator(calls, :>=, 3)
  end

  def test_a_scope_ends_what_does_not_end_itself
    Heddle.run(backend: backend) do
      assert_raises(Heddle::TimeoutError) do
        Heddle.scope(deadline: 0.01, grace: 0.01) { Heddle.shield { sleep(0.05) } }
      end
    end
  end
end
