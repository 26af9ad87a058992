# frozen_string_literal: true

require_relative "../../test_helper"
require "support/pools"

# Heddle::Pool: a connection that may be broken is closed, and not used again.
contract "BrokenConnections" do
  include TestSupport::Pools

  def test_a_discarded_connection_is_replaced
    pool = make_pool(size: 1)
    reactor do
      pool.with do
        pool.with { pool.discard }

        assert_equal("connection 1", pool.with { |connection| connection }, "until the end")
        assert_empty(@closed)
      end

      assert_equal(["connection 1"], @closed)
      assert_equal("connection 2", pool.with { |connection| connection })
      assert_equal([0, 1, 0], state(pool))
      assert_match(/discard/, assert_raises(Heddle::Error) { pool.discard }.message)
    end
  end

  def test_errors_that_break_a_connection
    pool = make_pool(broken: [KeyError, ->(error) { error.message == "lost" }])
    breaking = [IOError, EOFError, Errno::ECONNRESET, Timeout::Error, NotImplementedError, SystemExit, KeyError,
                RuntimeError.new("lost")]
    reactor do
      breaking.each_with_index do |error, index|
        assert_raises(error.is_a?(Class) ? error : error.class) { pool.with { raise error } }
        assert_equal(index + 1, @closed.size, error.inspect)
      end
      [ArgumentError, RuntimeError.new("found")].each do |error|
        assert_raises(StandardError) { pool.with { raise error } }
      end

      assert_equal(breaking.size, @closed.size)
      assert_equal([0, 1, 0], state(pool))
    end
  end

  # Whoever rescues it in between does not mend the connection.
  def test_an_error_that_leaves_only_the_nested_block
    pool = make_pool
    reactor do
      pool.with { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { pool.with { sleep } } } }

      assert_equal(["connection 1"], @closed)
    end
  end

  def test_that_another_pool_is_empty_breaks_nothing
    pool = make_pool
    other = Heddle::Pool.new(size: 1, timeout: 0) { :other }
    reactor do
      other.with do
        job = go { pool.with { other.with { flunk } } }

        assert_kind_of(Heddle::Pool::TimeoutError, job.failure)
      end
    end

    assert_empty(@closed)
  end

  def test_the_check_of_what_was_used_before
    good = true
    checked = []
    check = lambda do |connection|
      checked << connection
      sleep(0.001)
      good == :raise ? raise(IOError) : good
    end
    pool = make_pool(size: 1, check:)
    use = -> { pool.with { |connection| connection } }
    reactor do
      assert_equal(["connection 1"] * 2, [use.call, use.call])
      assert_equal(["connection 1"], checked, "not of a new one")
      good = nil

      assert_equal("connection 2", use.call)
      good = :raise

      assert_equal("connection 3", use.call)
      assert_equal(["connection 1", "connection 2"], @closed)
      assert_equal([0, 1, 0], state(pool))
    end
  end

  def test_a_check_that_is_interrupted
    pool = make_pool(check: ->(_) { sleep })
    reactor do
      pool.with { nil }

      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.3) { pool.with { flunk } } }
      assert_equal([["connection 1"], [0, 0, 0]], [@closed, state(pool)])
    end
  end

  def test_a_connection_that_cannot_be_closed
    pool = Heddle::Pool.new(size: 1, close: ->(_) { raise IOError, "closed stream" }) { Object.new }
    reactor do
      first = pool.with { |connection| pool.discard || connection }
      second = pool.with { |connection| connection }

      refute_same(first, second)
      assert_equal("closed stream", assert_raises(IOError) { pool.close }.message)
      assert_equal([0, 0, 0], state(pool))
    end
  end

  def test_a_timeout_of_its_own_ends_a_close
    stuck = Heddle::Pool.new(size: 1, close: ->(_) { Timeout.timeout(0.01) { sleep } }) { Object.new }
    reactor { stuck.with { stuck.discard } }
    Thread.new { stuck.with { stuck.discard } }.join

    assert_equal([0, 0, 0], state(stuck))
    stuck.with { nil }
    assert_raises(Timeout::Error) { stuck.close }
  end

  def test_a_cancel_while_a_broken_connection_is_closed
    heddle_only("cancel")
    closed = 0
    pool = Heddle::Pool.new(size: 1, close: ->(_) { sleep(0.01) && (closed += 1) }) { Object.new }
    Heddle.run(backend: backend) do
      task = Heddle.spawn { pool.with { pool.discard } }
      waiter = Heddle.spawn { pool.with { closed } }
      task.cancel

      assert_equal(1, waiter.value, "there are never more than its size")
    end
  end

  def test_what_a_killed_thread_held_is_not_used_again
    pool = make_pool
    held = Thread::Queue.new
    thread = Thread.new { pool.with { (held << true) && sleep } }
    held.pop
    thread.kill.join

    assert_equal(["connection 1"], @closed)
  end
end
