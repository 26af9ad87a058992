# frozen_string_literal: true

require_relative "../../test_helper"
require "support/pools"

# Heddle::Pool: how it ends, by hand and with its scope.
contract "PoolCloses" do
  include TestSupport::Pools

  def test_its_own_close
    readers, writers = Array.new(2) { IO.pipe }.transpose
    pool = Heddle::Pool.new(size: 2) { writers.shift }
    reactor do
      pool.with { pool.discard }
      pool.with { |writer| writer << "x" }
      pool.close

      assert_equal(["", "x"], readers.map(&:read))
    end
  ensure
    readers&.each(&:close)
  end

  def test_close_drains
    pool = make_pool(size: 2)
    events = []
    reactor do
      pool.with { go { pool.with { nil } }.value }
      release = Thread::Queue.new
      holder = go do
        pool.with do
          release.pop
          events << :finished
          pool.with { events << :nested }
        end
      end
      settle
      closer = go { pool.close.tap { events << :closed } }
      settle

      assert_equal([1, []], [@closed.size, events])
      assert_predicate(pool, :closed?)
      assert_equal("the pool is closed", assert_raises(Heddle::Pool::ClosedError) { pool.with { flunk } }.message)
      release << true
      [holder, closer].each(&:value)
    end

    assert_equal(%i[finished nested closed], events)
    assert_equal(["connection 1", "connection 2"], @closed.sort)
    assert_equal([0, 0, 0], state(pool))
    assert_nil(pool.close)
    assert_equal("#<Heddle::Pool 0 of 2 in use, closed>", pool.inspect)
  end

  def test_close_sends_away_those_who_wait
    pool = make_pool
    reactor do
      pool.with do
        waiters = Array.new(3) { go { pool.with { flunk } } }
        settle
        pool.close # a holder of its own does not wait for itself

        assert_equal([Heddle::Pool::ClosedError], waiters.map { |waiter| waiter.failure.class }.uniq)
        assert_empty(@closed)
      end

      assert_equal(["connection 1"], @closed)
    end
  end

  def test_close_waits_for_who_is_making_one
    pool = Heddle::Pool.new(size: 1, close: ->(connection) { @closed = connection }) { sleep(0.01) && :late }
    reactor do
      user = go { pool.with { |connection| connection } }
      settle
      pool.close

      assert_equal(:late, @closed)
      assert_equal(:late, user.value)
    end
  end

  def test_close_waits_until_a_holder_has_closed_its_own
    events = []
    release = Thread::Queue.new
    pool = Heddle::Pool.new(size: 1, close: ->(_) { release.pop && (events << :connection) }) { :one }
    reactor do
      holder = go { pool.with { release.pop } }
      settle
      closers = Array.new(2) do
        go { pool.close.tap { events << :pool } }.tap do
          settle
          release << true if pool.in_use.positive?
          settle
        end
      end
      release << true
      [holder, *closers].each(&:value)
    end

    assert_equal(%i[connection pool pool], events)
  end

  def test_it_ends_with_the_scope_that_made_it
    heddle_only("scopes")
    outside = make_pool
    closed = []
    close = ->(connection) { sleep(0.001) && (closed << connection) }
    inside = nil
    last = Thread::Queue.new
    Heddle.run(backend: backend) do
      outside.with { nil }
      inside = Heddle::Pool.new(size: 2, close:) { :inner }
      Heddle.spawn { last.pop && inside.with { closed << :used } }
      Heddle.run { Heddle::Pool.new(size: 1, close:) { :innermost }.with { closed << :before } }

      assert_equal(%i[before innermost], closed)
      Heddle::Pool.new(size: 1, close:) { :by_hand }.tap { |pool| pool.with { nil } }.close
      last << true
    end

    assert_equal(%i[before innermost by_hand used inner], closed)
    assert_equal([true, false], [inside.closed?, outside.closed?])
    error = assert_raises(Heddle::Pool::ClosedError) { inside.with { flunk } }

    assert_match(/in which it was made has ended/, error.message)
    assert_equal("connection 1", outside.with { |connection| connection })
  end

  def test_it_ends_with_a_scope_that_fails
    heddle_only("scopes")
    pool = nil
    error = assert_raises(IOError) do
      Heddle.run(backend: backend) do
        pool = make_pool(size: 2)
        pool.with { nil }
        Heddle.spawn { pool.with { sleep } }
        Heddle.spawn { raise IOError, "mine" }
        sleep
      end
    end

    assert_equal("mine", error.message)
    assert_equal([true, [0, 0, 0]], [pool.closed?, state(pool)])
    assert_includes(@closed, "connection 1")
  end

  def test_a_connection_that_cannot_be_closed_with_its_scope
    heddle_only("scopes")
    run = lambda do |error|
      Heddle.run(backend: backend) do
        Heddle::Pool.new(size: 1, close: ->(_) { raise IOError, "cannot close" }) { 1 }.with { nil }
        raise error if error
      end
    end
    begin
      raise KeyError
    rescue KeyError
      assert_equal("cannot close", assert_raises(IOError) { run.call(nil) }.message)
    end
    error = assert_raises(ArgumentError) { run.call(ArgumentError.new("mine")) }

    assert_equal("mine", error.message)
    assert_match(/mine.*also failed: cannot close \(IOError\)/m, error.detailed_message)
  end

  def test_the_scope_ends_although_a_connection_cannot_be_closed
    heddle_only("scopes")
    [IOError, NotImplementedError].each do |kind|
      closed = false
      Heddle.run(backend: backend) do
        ended = nil
        assert_raises(kind) do
          Heddle.scope do |scope|
            ended = scope
            Heddle::Pool.new(size: 1, close: ->(_) { raise kind, "cannot close" }) { 1 }.with { nil }
            Heddle::Pool.new(size: 1, close: ->(_) { closed = true }) { 2 }.with { nil }
          end
        end

        refute_predicate(ended, :open?)
        assert(closed)
      end
    end
  end
end
