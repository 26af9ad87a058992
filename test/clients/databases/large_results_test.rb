# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/servers/postgres"
require "support/servers/redis"

# An answer of 100 MB, over TCP and over a UNIX socket: it arrives whole, and the other tasks run meanwhile.
contract "LargeResults" do
  extend TestSupport::Clients

  client "redis-client", server: TestSupport::Servers::Redis
  client "pg", server: TestSupport::Servers::Postgres

  def assert_others_have_turns
    turns = 0
    over = false
    other = go { (turns += 1) && sleep(0.001) until over }
    value = yield
    over = true
    other.value

    assert_operator(turns, :>, 5)
    value
  end

  def test_redis
    server = TestSupport::Servers::Redis.running
    reactor do
      places = { 100_000_000 => { host: "127.0.0.1", port: server.port }, 20_000_000 => { path: server.path } }
      places.each do |size, place|
        client = keep(RedisClient.config(**place, timeout: 60).new_client)
        client.call("SETRANGE", "large", size - 1, "x")

        assert_equal(size, assert_others_have_turns { client.call("GET", "large") }.bytesize)
        assert_equal("PONG", client.call("PING"))
      ensure
        client&.call("DEL", "large")
      end
    end
  end

  once def test_postgres
    server = TestSupport::Servers::Postgres.running
    reactor do
      { host: "127.0.0.1", path: server.folder }.each_value do |host|
        client = PG.connect(host:, port: server.port, user: "heddle", dbname: "postgres")
        value = assert_others_have_turns { client.exec("SELECT repeat('x', 100000000)").getvalue(0, 0) }

        assert_equal(100_000_000, value.bytesize)
        assert_equal("1", client.exec("SELECT 1").getvalue(0, 0))
      ensure
        client&.close
      end
    end
  end
end
