# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/redis"

# The gem redis, which is made of redis-client, with a Redis.
contract "RedisGem" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "redis", server: TestSupport::Servers::Redis

  def title = "redis"
  def open_client(timeout:) = redis(timeout: timeout).tap(&:ping)
  def close_client(client) = client.close
  def timeout_errors = [Redis::TimeoutError]
  def after_a_cancel = :usable

  # BLPOP waits for this time, and ECHO comes after it.
  def ask(client, number, seconds)
    commands = lambda do |pipe|
      pipe.call("BLPOP", "none #{number}", seconds) if seconds.positive? # (0 is for ever)
      pipe.echo(number)
    end
    Integer(client.pipelined(&commands).last)
  end

  def redis(port = server.port, **options)
    keep(Redis.new(host: host, port: port, reconnect_attempts: 0, **options))
  end

  def test_fifty_tasks_at_the_same_time
    reactor do
      values, most = all_at_once(50) do |number|
        client = redis
        3.times { |turn| client.set("key #{number}", "#{number}.#{turn}") }
        client.get("key #{number}")
      end

      assert_equal(Array.new(50) { |number| "#{number}.2" }, values)
      assert_operator(most, :>, 10)
    end
  end

  def test_one_client_for_many_tasks
    reactor do
      client = redis
      values, = all_at_once(20) do |number|
        5.times { client.set("shared #{number}", number) }
        client.get("shared #{number}")
      end

      assert_equal((0...20).map(&:to_s), values)
    end
  end

  def test_slow_commands_overlap
    reactor do
      clients = Array.new(20) { redis(timeout: 60).tap(&:ping) }
      assert_overlaps(20) { all_at_once(20) { |number| clients[number].blpop("none #{number}", timeout: 0.3) } }
    end
  end

  def test_timeouts
    reactor do
      client = redis(timeout: 0.2)
      client.set("key", "value")

      server.paused do
        assert_times_out(0.2, Redis::TimeoutError) { client.get("key") }
      end

      assert_equal("value", client.get("key"))
      port = silent_port
      assert_times_out(0.2, Redis::CannotConnectError) { redis(port, timeout: 0.2).ping }
    end
  end

  def test_timeout_around
    reactor do
      client = redis(timeout: 5)
      client.set("key", "value")
      assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { client.blpop("none", timeout: 0) } }

      assert_equal("value", client.get("key"))
    end
  end

  def test_cancel
    client = nil
    prepare = -> { (client = redis(timeout: 5)).set("key", "value") }
    assert_cancels(prepare) { client.blpop("none", timeout: 0) }
    reactor { assert_equal("value", client.get("key")) }
  end
end
