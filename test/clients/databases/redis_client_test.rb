# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/redis"

# redis-client, with a Redis.
contract "RedisClient" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "redis-client", server: TestSupport::Servers::Redis

  def title = "redis-client"
  def open_client(timeout:) = redis(read_timeout: timeout).tap { |client| client.call("PING") }
  def close_client(client) = client.close
  def timeout_errors = [RedisClient::ReadTimeoutError]

  # BLPOP waits for this time, and ECHO comes after it.
  def ask(client, number, seconds)
    commands = lambda do |pipe|
      pipe.call("BLPOP", "none #{number}", seconds) if seconds.positive? # (0 is for ever)
      pipe.call("ECHO", number)
    end
    Integer(client.pipelined(&commands).last)
  end

  def redis(port = server.port, **options)
    keep(RedisClient.config(host: host, port: port, **options).new_client)
  end

  def test_fifty_tasks_at_the_same_time
    reactor do
      values, most = all_at_once(50) do |number|
        client = redis
        3.times { |turn| client.call("SET", "key #{number}", "#{number}.#{turn}") }
        client.call("GET", "key #{number}")
      end

      assert_equal(Array.new(50) { |number| "#{number}.2" }, values)
      assert_operator(most, :>, 10)
    end
  end

  def test_slow_commands_overlap
    reactor do
      clients = Array.new(20) { redis.tap { |client| client.call("PING") } }
      assert_overlaps(20) do
        values, = all_at_once(20) { |number| clients[number].blocking_call(60, "BLPOP", "none #{number}", 0.3) }

        assert_equal([nil], values.uniq)
      end
    end
  end

  def test_one_task_wakes_another
    reactor do
      waiting = go { redis.blocking_call(5, "BLPOP", "list", 0) }
      settle
      redis.call("RPUSH", "list", "item")

      assert_equal(%w[list item], waiting.value)
    end
  end

  def test_publish_and_subscribe
    reactor do
      subscriber = redis.pubsub
      subscriber.call("SUBSCRIBE", "news")

      assert_equal(["subscribe", "news", 1], subscriber.next_event(5))
      go { (sleep 0.05) && redis.call("PUBLISH", "news", "hello") }

      assert_equal(%w[message news hello], subscriber.next_event(5))
      assert_nil(subscriber.next_event(0.05))
    ensure
      subscriber&.close
    end
  end

  def test_pipelines_and_a_pool
    reactor do
      pool = RedisClient.config(host: host, port: server.port).new_pool(size: 3, timeout: 5)
      values, = all_at_once(20) do |number|
        pool.pipelined do |pipeline|
          pipeline.call("SET", "piped #{number}", number)
          pipeline.call("GET", "piped #{number}")
        end
      end
      pool.close

      assert_equal(Array.new(20) { |number| ["OK", number.to_s] }, values)
    end
  end

  def test_read_timeout
    reactor do
      client = redis(read_timeout: 0.2)
      client.call("SET", "key", "value")

      server.paused do
        assert_times_out(0.2, RedisClient::ReadTimeoutError) { client.call("GET", "key") }
      end

      assert_equal("value", client.call("GET", "key"))
    end
  end

  def test_write_timeout
    reactor do
      client = redis(write_timeout: 0.2)
      client.call("SET", "key", "value")

      server.paused do
        assert_times_out(0.2, RedisClient::WriteTimeoutError) { client.call("SET", "key", "x" * 20_000_000) }
      end

      assert_equal("value", client.call("GET", "key"))
    end
  end

  def test_connect_timeout
    reactor do
      port = silent_port
      assert_times_out(0.2, RedisClient::CannotConnectError) { redis(port, connect_timeout: 0.2).call("PING") }
    end
  end

  def test_timeout_around
    reactor do
      client = redis(timeout: 5)
      client.call("SET", "key", "value")
      assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { client.call("BLPOP", "none", 0) } }

      assert_equal("value", client.call("GET", "key"))
    end
  end

  def test_cancel
    client = nil
    prepare = -> { (client = redis(timeout: 5)).call("SET", "key", "value") }
    assert_cancels(prepare) { client.call("BLPOP", "none", 0) }
    reactor { assert_equal("value", client.call("GET", "key")) }
  end
end
