# frozen_string_literal: true

require_relative "../../test_helper"
require "support/clients"
require "support/servers/redis"

# What keeps a connection of Redis for long: subscribers, BLPOP, MULTI with WATCH and pipelines, in many tasks of one
# thread.
contract "RedisSessions" do
  extend TestSupport::Clients

  client "redis"
  client "redis-client", server: TestSupport::Servers::Redis

  def setup
    super
    @clients = []
    connect.call("FLUSHALL") if server
  end

  def teardown
    @clients&.each(&:close)
    super
  end

  def connect
    RedisClient.config(host: "127.0.0.1", port: server.port, timeout: 20).new_client.tap { |one| @clients << one }
  end

  def subscribe(*channels)
    subscriber = connect.pubsub
    subscriber.call("SUBSCRIBE", *channels)
    channels.size.times { subscriber.next_event(20) }
    subscriber
  end

  # @return [Array<String>] the texts of this number of messages
  def messages(subscriber, count) = Array.new(count) { subscriber.next_event(20)&.last }

  # 50 subscribers, five publishers: each gets what is for it, those of one publisher in their order.
  def test_many_subscribers_and_publishers
    reactor do
      subscribers = Array.new(50) { |number| subscribe("news#{number % 2}", "all") }
      waiting = subscribers.map { |one| go { messages(one, 5 * 21) } }
      all_at_once(5) do |sender|
        client = connect
        20.times { |turn| 2.times { |n| client.call("PUBLISH", "news#{n}", "#{n} #{sender} #{turn}") } }
        client.call("PUBLISH", "all", "a #{sender} end")
      end

      waiting.each_with_index do |job, number|
        job.value.group_by { |text| text[/ \d+ /] }.each do |sender, texts|
          assert_equal([*Array.new(20) { |turn| "#{number % 2}#{sender}#{turn}" }, "a#{sender}end"], texts)
        end
      end
    ensure
      subscribers&.each(&:close)
    end
  end

  # Who waits is cancelled, over and over, while they come.
  def test_no_message_is_lost_to_a_cancel
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      subscriber = subscribe("news")
      sender = connect
      sending = Heddle.spawn { 100.times { |n| sender.call("PUBLISH", "news", n) && sleep(0.001) } }
      got = []
      until sending.finished?
        waiting = Heddle.spawn { loop { subscriber.next_event(20).then { |event| got << event.last } } }
        sleep(0.0005 * (got.size % 7))
        waiting.cancel.wait(20)
      end
      got.concat(messages(subscriber, 100 - got.size))

      assert_equal(Array.new(100, &:to_s), got)
    ensure
      subscriber&.close
    end
  end

  # 50 wait at once; each push wakes one, who has waited longest.
  def test_fifty_are_woken_one_by_one
    reactor do
      woken = []
      pusher = connect
      jobs = Array.new(50) do |number|
        client = connect.tap { |one| one.call("PING") }
        job = go { client.blocking_call(20, "BLPOP", "jobs", 0).last.tap { woken << number } }
        wait_until("its BLPOP") { blocked(pusher) == number + 1 }
        job
      end
      50.times do |number|
        pusher.call("RPUSH", "jobs", number)
        wait_until("the one who is woken") { woken.size == number + 1 }
      end

      assert_equal([*0...50], woken)
      assert_equal((0...50).map(&:to_s), jobs.map(&:value))
    end
  end

  def blocked(client) = client.call("INFO", "clients")[/blocked_clients:(\d+)/, 1].to_i

  # Half of the waiting tasks are cancelled: their items are for the others. For that they close their clients.
  # redis-client alone keeps the connection until its next call, and the server would hand an item to nobody.
  def test_cancelled_ones_take_no_item
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      pusher = connect
      tasks = Array.new(20) { Heddle.spawn { take_and_close(connect) } }
      wait_until("20 of them") { blocked(pusher) == 20 }
      cancelled = tasks.each_slice(2).map { |one, _| one.cancel }.each { |task| task.wait(20) }
      wait_until("10 of them") { blocked(pusher) == 10 }
      10.times { |number| pusher.call("RPUSH", "items", number) }

      assert_equal((0...10).map(&:to_s), (tasks - cancelled).map(&:value).sort)
      assert(cancelled.all?(&:cancelled?))
    end
  end

  def take_and_close(client)
    client.blocking_call(20, "BLPOP", "items", 0).last
  ensure
    client.close
  end

  # What the guide warns of. With threads and Timeout it is the same.
  def test_without_a_close_an_item_is_lost
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      pusher = connect
      client = connect
      task = Heddle.spawn { client.blocking_call(20, "BLPOP", "items", 0) }
      wait_until("its BLPOP") { blocked(pusher) == 1 }
      task.cancel.wait(20)
      pusher.call("RPUSH", "items", "lost")

      assert_equal(0, pusher.call("LLEN", "items"), "it is not lost any more: the guide need not warn")
      assert_equal("own answer", client.call("ECHO", "own answer"))
    end
  end

  # 20 tasks count one number up, with WATCH: who finds that it was changed begins again.
  def test_multi_with_watch
    reactor do
      all_at_once(20) do
        client = connect
        5.times { nil until count_up(client) }
      end

      assert_equal("100", connect.call("GET", "number"))
    end
  end

  # @return [Array, nil] nil if somebody else was faster
  def count_up(client)
    client.multi(watch: ["number"]) do |transaction|
      before = client.call("GET", "number").to_i
      sleep(0)
      transaction.call("SET", "number", before + 1)
    end
  end

  def test_a_cancelled_multi_does_nothing
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      client = connect
      task = Heddle.spawn do
        client.multi(watch: ["watched"]) do |transaction|
          transaction.call("SET", "watched", "changed")
          sleep
        end
      end
      task.wait(0.05)
      task.cancel.wait(20)

      assert_nil(client.call("GET", "watched"))
      assert_equal("OK", client.call("SET", "watched", "later"))
      assert_equal("later", client.call("GET", "watched"))
    end
  end

  # 20 pipelines at once, each of 200 commands; the answers to each are its own.
  def test_pipelines
    reactor do
      answers, most = all_at_once(20) do |number|
        connect.pipelined do |pipe|
          100.times { |turn| pipe.call("SET", "#{number} #{turn}", (1000 * number) + turn) }
          100.times { |turn| pipe.call("GET", "#{number} #{turn}") }
        end.last(100).map(&:to_i)
      end

      assert_equal(Array.new(20) { |number| Array.new(100) { |turn| (1000 * number) + turn } }, answers)
      assert_operator(most, :>, 5)
    end
  end

  # A pipeline that is cancelled before its answers are there, 20 times, in a pool: the next call gets its own.
  def test_pipelines_that_are_cancelled
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      pool = RedisClient.config(host: "127.0.0.1", port: server.port, timeout: 20).new_pool(size: 2, timeout: 20)
      20.times do |number|
        task = Heddle.spawn { pool.pipelined { |pipe| 50.times { |turn| pipe.call("ECHO", "late #{turn}") } } }
        sleep(0.0005 * (number % 4))
        task.cancel.wait(20)

        assert_equal("own #{number}", pool.call("ECHO", "own #{number}"))
      end
    ensure
      pool&.close
    end
  end

  # The gem redis: a subscriber is in its block until it unsubscribes, and has its connection for itself.
  def test_subscribers_of_the_gem_redis
    reactor do
      ready = 0
      waiting = Array.new(10) do
        go do
          texts = []
          with_redis do |client|
            client.subscribe("news") do |on|
              on.subscribe { ready += 1 }
              on.message { |_, text| (texts << text) && text == "end" && client.unsubscribe }
            end
          end
          texts
        end
      end
      wait_until("their subscriptions") { ready == 10 }
      with_redis { |client| %w[one two end].each { |text| client.publish("news", text) } }

      assert_equal([%w[one two end]], waiting.map(&:value).uniq)
    end
  end

  def with_redis
    client = Redis.new(host: "127.0.0.1", port: server.port, timeout: 20)
    yield(client)
  ensure
    client&.close
  end
end
