# frozen_string_literal: true

require_relative "../test_helper"
require "support/clients"
require "support/servers/memcached"

# dalli with its adapter: a cancel or a timeout while it connects.
contract "DalliAdapter" do
  extend TestSupport::Clients

  client "dalli", server: TestSupport::Servers::Memcached

  heddle_only "it is about tasks"

  def setup
    super
    require "heddle/adapters/dalli"
    Dalli.logger.level = Logger::FATAL
  end

  def dalli(**) = keep(Dalli::Client.new("127.0.0.1:#{server.port}", socket_timeout: 60, **))

  # Its question for the version is answered when nobody waits for the answer any more.
  def test_the_next_call_gets_its_own_answer
    clients = Array.new(2) { dalli }
    Heddle.run(backend: backend) do
      dalli.set("key", "value")
      tasks = server.paused do
        [Heddle.spawn(isolated: true) { clients[0].get("key") },
         Heddle.spawn(isolated: true) { Timeout.timeout(0.1) { clients[1].get("key") } }.wait]
          .each { |task| task.cancel.wait(20) }
      end

      assert_equal([Heddle::Cancelled, Timeout::Error], tasks.map { |task| task.error.class })
      clients.each { |client| assert_equal(["value"] * 2, Array.new(2) { client.get("key") }) }
    end
  end

  # What it raises by itself is as before.
  def test_a_server_that_is_gone
    Heddle.run(backend: backend) do
      client = keep(Dalli::Client.new("127.0.0.1:#{free_port}", socket_max_failures: 1))

      assert_raises(Dalli::RingError) { client.get("key") }
    end
  end
end
