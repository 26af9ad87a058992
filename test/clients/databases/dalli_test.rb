# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients/client_matrix"
require "support/servers/memcached"

# dalli, with a memcached.
contract "DalliClient" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "dalli", server: TestSupport::Servers::Memcached, late: true

  def title = "dalli"
  def close_client(client) = client.close
  def timeout_errors = [Dalli::NetworkError]
  def after_a_cancel = :usable

  def open_client(timeout:)
    dalli(late_port, socket_timeout: timeout, socket_max_failures: 1).tap { |client| client.get("connects") }
  end

  # memcached has no slow command: the proxy before it is late.
  def ask(client, number, seconds) = client.incr("late=#{seconds},#{number}", 0, 0, number)

  # Without a second try, so that a timeout shows at once.
  def impatient = { socket_timeout: 0.2, socket_max_failures: 1, down_retry_delay: 0.01 }

  def setup
    super
    Dalli.logger.level = Logger::FATAL
  end

  def dalli(port = server.port, **options)
    keep(Dalli::Client.new("#{host}:#{port}", **options))
  end

  def test_fifty_tasks_at_the_same_time
    reactor do
      values, most = all_at_once(50) do |number|
        client = dalli
        3.times { |turn| client.set("key #{number}", [number, turn]) }
        client.get("key #{number}")
      end

      assert_equal(Array.new(50) { |number| [number, 2] }, values)
      assert_operator(most, :>, 10)
    end
  end

  def test_one_client_for_many_tasks
    reactor do
      client = dalli
      values, = all_at_once(20) do |number|
        5.times { client.set("shared #{number}", number) }
        client.get("shared #{number}")
      end

      assert_equal((0...20).to_a, values)
    end
  end

  def test_many_keys_at_once
    reactor do
      pairs = Array.new(100) { |number| ["many #{number}", "x" * 10 * number] }.to_h
      values, = all_at_once(5) do
        client = dalli
        client.set_multi(pairs)
        client.get_multi(*pairs.keys)
      end

      values.each { |value| assert_equal(pairs, value) }
    end
  end

  # memcached has no slow command. It stands still for a while, with an operation of each task.
  def test_a_slow_server_holds_up_nobody_else
    reactor do
      clients = Array.new(20) { dalli(socket_timeout: 60).tap { |client| client.set("slow", 1) } }
      assert_overlaps(20) do
        values, = all_at_once(20) { |number| clients[number].get("slow") }

        assert_equal([1] * 20, values)
      end
    end
  end

  def test_socket_timeout
    reactor do
      client = dalli(**impatient)
      client.set("key", "value")
      server.paused do
        error = assert_times_out(0.2, Dalli::NetworkError) { client.get("key") }

        assert_match(/IO::TimeoutError/, error.message)
      end
      sleep(0.02) # the client treats the server as down for this time

      assert_equal("value", client.get("key"))
    end
  end

  def test_socket_timeout_while_it_connects
    reactor do
      port = silent_port
      assert_times_out(0.2, Dalli::RingError) { dalli(port, **impatient).get("key") }
    end
  end

  def test_timeout_around
    reactor do
      client = dalli
      client.set("key", "value")

      server.paused do
        assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { client.get("key") } }
      end

      assert_equal("value", client.get("key"))
    end
  end

  def test_cancel
    client = dalli
    reactor { client.set("key", "value") }

    server.paused { assert_cancels { client.get("key") } }
    reactor { assert_equal("value", client.get("key")) }
  end

  # Without the adapter, the next call gets the answer to the question for the version. The remedy: close it.
  def test_cancel_while_it_connects
    [false, true].each do |closes|
      client = dalli(socket_timeout: 60)

      server.paused { assert_cancels { client.get("key") } }
      client.close if closes
      reactor { closes ? assert_nil(client.get("no key")) : assert_raises(Dalli::DalliError) { client.get("no key") } }
    end
  end

  def test_the_server_is_gone
    reactor do
      assert_raises(Dalli::RingError) { dalli(free_port, **impatient).get("key") }
    end
  end
end
