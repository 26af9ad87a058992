# frozen_string_literal: true

require_relative "../../test_helper"

# Heddle::RateLimiter: a limited number in any window of time.
contract "RateLimiter" do
  def setup
    super
    skip("plain threads: without Heddle") unless defined?(Heddle::RateLimiter)
  end

  # Seconds.
  def per = 0.1

  # Calls the block with what takes part in the limit, and fails if that has let more than +limit+ through in a window.
  # It has let a call through when this had begun and had not yet ended, and a window after the one +limit+ before it:
  # no call has ended too soon for that, however late a busy machine is.
  def assert_no_burst(limit, count)
    limiter = Heddle::RateLimiter.new(limit, per: per)
    began = Thread::Queue.new
    ended = Thread::Queue.new
    yield(-> { (began << now) && limiter.acquire && (ended << now) })

    assert_equal([count, count], [began.size, ended.size])
    began, ended = [began, ended].map { |times| Array.new(count) { times.pop }.sort }
    earliest = []
    ended.each_with_index do |time, number|
      earliest << (number < limit ? began[number] : [began[number], earliest[number - limit] + per].max)

      assert_operator(time, :>=, earliest.last - 0.001, "call #{number}")
    end
  end

  def test_no_window_has_more_than_the_limit
    assert_no_burst(3, 10) { |call| reactor { 10.times { go { call.call } } } }
  end

  # A bucket that had filled meanwhile would let the limit through twice.
  def test_no_burst_after_a_pause
    assert_no_burst(2, 6) do |call|
      reactor do
        call.call
        sleep(per * 0.9)
        5.times { call.call }
      end
    end
  end

  def test_the_first_ones_do_not_wait
    limiter = Heddle::RateLimiter.new(100, per: 1000)

    assert_equal(100, reactor { Array.new(100) { go { limiter.acquire } }.count(&:value) })
  end

  def test_first_come_first_served
    limiter = Heddle::RateLimiter.new(2, per: 0.02)
    order = []
    reactor { 6.times { |i| go { limiter.acquire && (order << i) }.tap { settle } } }

    assert_equal([0, 1, 2, 3, 4, 5], order)
  end

  def test_cancelled_waiters_leave_no_hole
    heddle_only("cancel")
    limiter = Heddle::RateLimiter.new(1, per: 0.5)
    started = now
    Heddle.run(backend: backend) do
      limiter.acquire
      tasks = Array.new(101) { Heddle.spawn { limiter.acquire } }
      tasks.first(100).each(&:cancel)
      tasks.last.wait
    end

    assert_operator(now - started, :>=, 0.5)
    assert_operator(now - started, :<, 25) # each hole would take half a second
    assert_equal(0, limiter.waiting)
  end

  def test_a_timeout_while_waiting
    limiter = Heddle::RateLimiter.new(1, per: 1000)
    reactor do
      limiter.acquire
      assert_raises(Timeout::Error) { go { Timeout.timeout(0.01) { limiter.acquire } }.value }
    end

    assert_equal(0, limiter.waiting)
  end

  def test_threads_and_tasks_share_it
    assert_no_burst(2, 6) do |call|
      threads = Array.new(3) { Thread.new { call.call } }
      reactor { 3.times { go { call.call } } }
      threads.each(&:join)
    end
  end

  def test_with_a_block
    limiter = Heddle::RateLimiter.new(1, per: 0.01)

    assert_equal(:value, reactor { limiter.acquire { :value } })
    assert_same(limiter, reactor { limiter.acquire })
    assert_equal("#<Heddle::RateLimiter 1 per 0.01 s>", limiter.inspect)
  end

  def test_what_is_asked_wrongly
    [0, 1.5, nil].each do |limit|
      assert_match(/limit/, assert_raises(ArgumentError) { Heddle::RateLimiter.new(limit, per: 1) }.message)
    end
    [0, -1, nil, "1", Float::INFINITY, Float::NAN, 1e300, 10**400].each do |wrong|
      error = assert_raises(ArgumentError) { Heddle::RateLimiter.new(1, per: wrong) }

      assert_match(/\Aper: must be .{,150}\z/, error.message)
    end
  end
end
