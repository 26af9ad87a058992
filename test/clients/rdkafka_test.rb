# frozen_string_literal: true

# bin/test: takes 8 s, 0.4 of a core

require_relative "../test_helper"
require "logger"
require "support/clients"
require "support/servers/kafka"

# rdkafka, with the broker that librdkafka has for tests. It has threads of its own in C, and calls back in a thread of
# Ruby: a task waits for that by a condition variable. Only a consumer's poll waits in C.
contract "Rdkafka" do
  extend TestSupport::Clients

  client "rdkafka"

  heddle_only "it is about tasks"

  def before_setup
    Rdkafka::Config.ensure_log_thread if defined?(Rdkafka) # it stays
    super
  end

  def setup
    super
    Rdkafka::Config.logger = Logger.new(nil)
    @open = []
    @broker = opened(Rdkafka::Config.new("test.mock.num.brokers": 1, "bootstrap.servers": "none").admin)
    @address = @broker.metadata(nil).brokers.first.values_at(:broker_name, :broker_port).join(":")
  end

  def teardown
    @open&.reverse_each(&:close)
    super
  end

  def opened(one) = one.tap { @open << one }

  def producer(address = @address, **settings)
    opened(Rdkafka::Config.new("bootstrap.servers": address, "linger.ms": 0, **settings).producer)
  end

  # In a process of its own, which can be killed and stopped. Its address takes the place of the other one.
  def broker_apart
    broker = TestSupport::Servers::Kafka.new.tap(&:start)
    @address = "127.0.0.1:#{broker.port}"
    yield(broker)
  ensure
    broker&.stop
  end

  # Of one partition, from its beginning.
  def consumer(topic)
    config = Rdkafka::Config.new("bootstrap.servers": @address, "group.id": topic, "enable.auto.commit": false)
    list = Rdkafka::Consumer::TopicPartitionList.new
    list.add_topic_and_partitions_with_offsets(topic, 0 => 0)
    opened(config.consumer).tap { |one| one.assign(list) }
  end

  def produce(producer, topic, payload)
    producer.produce(topic:, payload:, partition: 0).wait(max_wait_timeout_ms: 20_000).offset
  end

  # The way of the guide.
  def take(consumer)
    sleep(0.01) until (message = consumer.poll_nb)
    message.payload
  end

  # Each topic has its own consumer, and all messages of the topic reach it in their order.
  def test_producers_and_consumers
    taken = reactor do
      sender = producer
      consumers = Array.new(5) { |number| consumer("topic#{number}") }
      taking = consumers.map { |one| go { Array.new(4) { take(one) } } }
      offsets, = all_at_once(5) { |number| Array.new(4) { |n| produce(sender, "topic#{number}", "#{number} #{n}") } }

      assert_equal([[0, 1, 2, 3]], offsets.uniq)
      taking.map(&:value)
    end

    assert_equal(Array.new(5) { |number| Array.new(4) { |n| "#{number} #{n}" } }, taken)
  end

  # Nobody answers: the others run, and the wait ends by its own limit, by a timeout and by a cancel.
  def test_a_broker_that_is_silent
    sender = producer("127.0.0.1:#{mute_port}", "message.timeout.ms": 60_000)
    handle = sender.produce(topic: "topic", payload: "late", partition: 0)
    reactor do
      assert_times_out(0.2, Rdkafka::AbstractHandle::WaitTimeoutError) { handle.wait(max_wait_timeout_ms: 200) }
      assert_times_out(0.1, Timeout::Error) { Timeout.timeout(0.1) { handle.wait(max_wait_timeout_ms: 60_000) } }
    end
    assert_cancels { handle.wait(max_wait_timeout_ms: 60_000) }
    sender.purge
  end

  # The next one gets the message.
  def test_a_consumer_that_is_cancelled
    taker = consumer("topic")
    assert_cancels { take(taker) }
    reactor do
      produce(producer, "topic", "kept")

      assert_equal("kept", take(taker))
    end
  end

  # Its poll waits in C, in another thread.
  def test_an_offloaded_poll
    taker = consumer("topic")
    message = reactor do
      assert_others_run do
        polling = go { Heddle.offload(lasting: true) { taker.poll(20_000) } }
        others_have_run
        produce(producer, "topic", "polled")
        polling.value
      end
    end

    assert_equal("polled", message.payload)
  end

  def start_to_produce(sender, texts)
    texts.map { |payload| sender.produce(topic: "topic", payload:, partition: 0) }
  end

  # It has some messages when it is killed. Each wait ends, with an error or with the place of the message.
  def test_a_broker_that_is_killed
    broker_apart do |broker|
      sender = producer("message.timeout.ms": 2000)
      reactor do
        taker = consumer("topic")

        assert_equal(0, produce(sender, "topic", "before"))
        assert_equal("before", take(taker))
        handles = broker.paused do
          start_to_produce(sender, %w[one two three]).tap { broker.kill }
        end
        outcomes = assert_others_run { all_at_once(3) { |number| outcome_of(handles[number]) }.first }

        outcomes.each_with_index { |outcome, number| assert_includes([Rdkafka::RdkafkaError, number + 1], outcome) }
        assert_times_out(0.2, Timeout::Error) { Timeout.timeout(0.2) { take(taker) } }
      end
    end
  end

  def outcome_of(handle)
    handle.wait(max_wait_timeout_ms: 25_000).offset
  rescue Rdkafka::RdkafkaError => e
    e.class
  end

  # Waits end by their own limits. The messages arrive when it goes on, each once, except for those whose time is over.
  def test_a_broker_that_stands_still
    broker_apart do |broker|
      sender = producer("message.timeout.ms": 60_000)
      short = producer("message.timeout.ms": 1000)
      reactor do
        [sender, short].each { |one| produce(one, "topic", "before") }
        handles = broker.paused do
          start_to_produce(sender, %w[one two three]).tap do |begun|
            assert_times_out(0.2, Rdkafka::AbstractHandle::WaitTimeoutError) { begun[0].wait(max_wait_timeout_ms: 200) }
            assert_raises(Rdkafka::RdkafkaError) { produce(short, "other", "too late") }
          end
        end
        offsets = handles.map { |handle| handle.wait(max_wait_timeout_ms: 25_000).offset }
        taker = consumer("topic")

        assert_equal([2, 3, 4], offsets)
        assert_equal(%w[before before one two three], Array.new(5) { take(taker) })
      end
    end
  end
end
