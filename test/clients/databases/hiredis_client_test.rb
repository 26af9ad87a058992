# frozen_string_literal: true

# bin/test: takes 3 s, 0.4 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/servers/redis"

# hiredis-client, the driver in C of redis-client, with a Redis: it waits with select. The remedy is the other driver.
contract "HiredisClient" do
  extend TestSupport::Clients

  client "hiredis-client", server: TestSupport::Servers::Redis

  heddle_only "it is about tasks"

  def redis(**options) = keep(RedisClient.config(host: host, port: server.port, **options).new_client)

  def longest_hold(**options)
    Heddle.run(backend: backend) do
      client = redis(**options)
      last = now
      longest = 0
      Heddle.every(0.01) { longest = [longest, now - last].max.tap { last = now } }
      client.blocking_call(5, "BLPOP", "none", 0.3)
      [longest, now - last].max
    end
  end

  # Without the setting. This says so if a later version does not any more.
  def test_the_driver_in_c_holds_up_the_others
    assert_operator(longest_hold(driver: :hiredis), :>, 0.25)
  end

  def test_the_driver_in_ruby
    reactor do
      client = redis(driver: :ruby)
      client.call("PING")
      assert_overlaps(1) { assert_nil(client.blocking_call(60, "BLPOP", "none", 0.3)) }
    end
  end

  def test_the_setting_for_all_clients
    driver = RedisClient.default_driver
    RedisClient.default_driver = :ruby

    reactor do
      clients = Array.new(20) { redis.tap { |client| client.call("PING") } }
      assert_overlaps(20) do
        values, = all_at_once(20) { |number| clients[number].blocking_call(60, "BLPOP", "none #{number}", 0.3) }

        assert_equal([nil], values.uniq)
      end
    end
  ensure
    RedisClient.default_driver = driver
  end
end
