# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients"

# connection_pool: a pool for threads serves tasks as it is.
contract "ConnectionPoolClient" do
  extend TestSupport::Clients

  client "connection_pool"

  def make_pool(size: 5, timeout: 5)
    made = 0
    ConnectionPool.new(size:, timeout:) { "connection #{made += 1}" }
  end

  def test_tasks_share_its_connections
    pool = make_pool
    reactor do
      used, most = all_at_once(50) { pool.with { |connection| sleep(0.002) && connection } }

      assert_operator(used.uniq.size, :<=, 5)
      assert_operator(most, :>, 10)
    end

    assert_equal(5, pool.available)
  end

  def test_a_nested_block_has_the_same_connection
    pool = make_pool
    reactor do
      values, = all_at_once(5) do
        pool.with do |a|
          sleep(0.001)
          pool.with { |b| [a, b] }
        end
      end

      values.each { |a, b| assert_same(a, b) }
      assert_equal(5, values.uniq.size)
    end
  end

  def test_no_connection_in_time
    pool = make_pool(size: 1, timeout: 0.02)
    reactor do
      pool.with do
        assert_kind_of(ConnectionPool::TimeoutError, go { pool.with { flunk } }.failure)
        assert_kind_of(ConnectionPool::TimeoutError, go { pool.with(timeout: 0.001) { flunk } }.failure)
      end

      assert_equal("connection 1", go { pool.with { |connection| connection } }.value)
    end
  end

  def test_a_timeout_around_it_gives_back
    pool = make_pool(size: 1)
    reactor do
      job = go { Timeout.timeout(0.02) { pool.with { sleep } } }

      assert_kind_of(Timeout::Error, job.failure)
      assert_equal("connection 1", go { pool.with { |connection| connection } }.value)
    end
  end

  def test_a_cancelled_holder_gives_back
    heddle_only("cancel")
    pool = make_pool(size: 1)
    Heddle.run(backend: backend) do
      holder = Heddle.spawn { pool.with { sleep } }
      waiter = Heddle.spawn { pool.with { |connection| connection } }
      holder.cancel

      assert_equal("connection 1", waiter.value)
    end

    assert_equal(1, pool.available)
  end

  def test_a_discarded_connection_is_replaced
    pool = make_pool(size: 1)
    reactor do
      pool.with { pool.discard_current_connection }

      assert_equal("connection 2", go { pool.with { |connection| connection } }.value)
    end
  end

  def test_threads_and_tasks_share_it
    pool = make_pool(size: 2)
    lock = Mutex.new
    most = running = 0
    use = lambda do |_ = nil|
      pool.with do
        lock.synchronize { most = [most, running += 1].max }
        sleep(0.001)
        lock.synchronize { running -= 1 }
      end
    end
    threads = Array.new(3) { Thread.new { 10.times(&use) } }
    reactor { 10.times { go { 3.times(&use) } } }
    threads.each(&:join)

    assert_equal([2, 2], [most, pool.available])
  end

  def test_shutdown
    pool = make_pool(size: 2)
    closed = []
    reactor do
      release = Thread::Queue.new
      holder = go { pool.with { |connection| release.pop && connection } }
      settle
      pool.with { nil }
      pool.shutdown { |connection| closed << connection }

      assert_raises(ConnectionPool::PoolShuttingDownError) { go { pool.with { flunk } }.value }
      release << true
      holder.value
    end

    assert_equal(["connection 1", "connection 2"], closed.sort)
  end
end
