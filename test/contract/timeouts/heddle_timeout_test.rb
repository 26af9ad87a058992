# frozen_string_literal: true

require_relative "../../test_helper"
require "timeout"

# Heddle.timeout: in tasks, and in threads without Heddle.
contract "HeddleTimeout" do
  def setup
    super
    skip("plain threads: without Heddle") unless defined?(Heddle)
  end

  def test_the_value_of_the_block
    assert_equal(:value, reactor { Heddle.timeout(10) { sleep(0.001) && :value } })
    assert_equal(:value, reactor { Heddle.timeout(nil) { sleep(0.001) && :value } })
    assert_equal(:value, Heddle.timeout(10) { :value })
    assert_equal(:value, Heddle.timeout(Float::INFINITY) { :value })
  end

  # (Ruby's own thread for timeouts would end with an error, and with it the timeouts of others.)
  def test_more_than_anybody_can_wait
    [1e300, 10**400, 2**63, Rational(10**400)].each do |seconds|
      assert_equal(:value, Heddle.timeout(seconds) { sleep(0.001) && :value })
      assert_equal(:value, reactor { Heddle.timeout(seconds) { sleep(0.001) && :value } })
    end
  end

  def test_the_time_is_over
    [-> { reactor { Heddle.timeout(0.01) { sleep } } }, -> { Heddle.timeout(0.01) { sleep } }].each do |wait|
      error = assert_raises(Heddle::TimeoutError, &wait)

      assert_kind_of(Timeout::Error, error)
      assert_equal("not done after 0.01 s", error.message)
      assert_nil(error.cause)
      assert_includes(error.backtrace.join("\n"), __FILE__)
    end
  end

  # Ruby raises one pending exception of a thread at a time. The other one must not be raised later.
  def test_another_exception_at_the_same_time_in_a_thread
    later = { IOError => :never, Timeout::ExitException => :never }
    masked = Thread::Queue.new
    thread = Thread.new do
      Heddle.timeout(0.5) do
        Thread.handle_interrupt(later) do
          masked << true
          sleep(0.01) until later.keys.all? { |error| Thread.pending_interrupt?(error) }
        end
      end
    rescue IOError => e
      Thread.handle_interrupt(NotImplementedError => :immediate) { nil } # raises what is pending
      e.message
    end
    masked.pop
    thread.raise(IOError, "another")

    assert_equal("another", thread.value)
  end

  def test_a_rescue_inside_does_not_catch_it
    ended = false
    assert_raises(Heddle::TimeoutError) do
      reactor do
        Heddle.timeout(0.01) do
          sleep
        rescue StandardError
          flunk
        ensure
          sleep(0.001)
          ended = true
        end
      end
    end

    assert(ended)
  end

  def test_the_earlier_of_two_wins
    reactor do
      outer = inner = nil
      begin
        Heddle.timeout(0.01) do
          Heddle.timeout(10) { sleep }
        rescue Heddle::TimeoutError => e
          inner = e
        end
      rescue Heddle::TimeoutError => e
        outer = e
      end

      assert_nil(inner)
      assert_equal("not done after 0.01 s", outer.message)
      assert_equal(:went_on, Heddle.timeout(10) { timed_out { Heddle.timeout(0.01) { sleep } } && :went_on })
    end
  end

  def test_among_timeouts_of_ruby
    reactor do
      error = assert_raises(Timeout::Error) { Timeout.timeout(0.01) { Heddle.timeout(10) { sleep } } }

      refute_kind_of(Heddle::TimeoutError, error)
      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { Timeout.timeout(10) { sleep } } }
    end
  end

  def test_an_error_of_the_block_is_not_taken_for_it
    own = Timeout::Error.new("own")

    assert_same(own, assert_raises(Timeout::Error) { reactor { Heddle.timeout(1) { raise own } } })
    assert_raises(IOError) { Heddle.timeout(1) { raise IOError } }
  end

  def test_no_time_left
    called = false

    [0, -1, 0.0].each { |seconds| assert_raises(Heddle::TimeoutError) { Heddle.timeout(seconds) { called = true } } }

    refute(called)
  end

  def test_the_tasks_of_the_block_have_ended
    heddle_only("Heddle.map")
    started = []
    ended = []
    Heddle.run(backend: backend) do
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.05) do
          Heddle.map([1, 2]) do |x|
            started << x # on a busy machine the time may be over before the second one begins
            sleep
          ensure
            sleep(0.001)
            ended << x
          end
        end
      end

      assert_equal(started, ended)
      assert_equal(1, Heddle.spawn { 1 }.value)
    end
  end

  def test_around_a_run
    heddle_only("Heddle.run")
    assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.02) { Heddle.run(backend: backend) { sleep } } }
    assert_nil(Fiber.scheduler)
  end

  def test_masked
    reactor do
      events = []
      error = assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.01) do
          Thread.handle_interrupt(Timeout::ExitException => :never) { sleep(0.03) && (events << :inside) }
          sleep(10)
        end
      end

      assert_equal([:inside], events)
      assert_nil(error.cause)
    end
  end

  def test_what_is_asked_wrongly
    ["1", Float::NAN].each do |seconds|
      assert_match(/\Aseconds: /, assert_raises(ArgumentError) { Heddle.timeout(seconds) { flunk } }.message)
    end
    assert_raises(ArgumentError) { Heddle.timeout(1) }
  end

  def timed_out
    yield
    false
  rescue Heddle::TimeoutError
    true
  end
end
