# frozen_string_literal: true

# bin/test: takes 18 s, 0.5 of a core

require_relative "../test_helper"
require "support/clients/client_matrix"
require "support/servers/rabbitmq"

# bunny, with a RabbitMQ. Each connection of bunny has a thread that reads, and each channel with a consumer has one
# that works: they hand over to tasks by queues and condition variables.
contract "Bunny" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix

  client "bunny", server: TestSupport::Servers::Rabbitmq, late: true

  def title = "bunny"
  def close_client(client) = close_at_last(client.connection)
  def timeout_errors = [Timeout::Error]

  # A connection of its own, and a channel.
  def open_client(timeout:)
    connect(late_port, continuation_timeout: (timeout * 1000).to_i).create_channel
  end

  # RabbitMQ has no slow command: the proxy before it is late. The name of the queue is in the answer.
  # (1 s at most, for what closes the connection comes after it.)
  def ask(client, number, seconds)
    name = "late=#{seconds.clamp(..1)},#{number}"
    Integer(client.queue_declare(name, auto_delete: true, durable: false).queue[/\d+\z/])
  end

  # bunny raises what ends a connection in the thread that has made it. That is the thread of all tasks.
  handler = Struct.new(:errors) do
    def raise(error) = errors << error
  end

  define_method(:connect) do |port = server.port, **options|
    @connections << Bunny.new(host: "127.0.0.1", port: port, logger: Logger.new(nil), automatically_recover: false,
                              session_error_handler: handler.new([]), **options)
    @connections.last.start
  end

  def setup
    super
    @connections = []
  end

  def teardown
    @connections&.each { |one| close_at_last(one) }
    super
  end

  # With time enough: if there is no answer within its limit, bunny gives up, and leaves its threads. A connection that
  # has failed is not answered any more.
  def close_at_last(connection)
    connection.transport.close if connection.instance_variable_get(:@session_error_handler).errors.any?
    connection.instance_variable_set(:@continuation_timeout, 20_000)
    connection.close unless connection.closed?
  end

  def channel = connect.create_channel

  # A queue of its own for each test.
  def queue_of(channel, name = "") = channel.queue(name, exclusive: name.empty?, auto_delete: true)

  # 20 consumers at once, each with a task that waits for what the thread of its channel hands over. Nothing is lost,
  # nothing goes to another one, and the order is kept.
  def test_consumers_hand_over_to_tasks
    reactor do
      connection = connect
      names = Thread::Queue.new
      consumers = Array.new(20) { go { consume(connection, names, 25) } }
      routing = Array.new(20) { names.pop }
      publisher = connection.create_channel
      25.times { |n| routing.each { |name| publisher.default_exchange.publish("#{name} #{n}", routing_key: name) } }
      received = assert_others_run { consumers.map(&:value) }

      received.each { |name, texts| assert_equal(Array.new(25) { |n| "#{name} #{n}" }, texts) }
      assert_equal(routing.sort, received.map(&:first).sort)
    end
  end

  # @return [Array(String, Array<String>)] the name of the queue, and what has come
  def consume(connection, names, count)
    channel = connection.create_channel
    queue = queue_of(channel)
    inbox = Thread::Queue.new
    queue.subscribe(manual_ack: true) { |delivery, _, text| inbox << [delivery, text] }
    names << queue.name
    texts = Array.new(count) do
      delivery, text = inbox.pop
      channel.ack(delivery.delivery_tag)
      text
    end
    [queue.name, texts]
  ensure
    channel&.close
  end

  def test_publisher_confirms
    reactor do
      connection = connect
      counts, = all_at_once(10) do
        channel = connection.create_channel
        channel.confirm_select
        queue = queue_of(channel)
        50.times { |n| channel.default_exchange.publish(n.to_s, routing_key: queue.name) }

        assert(channel.wait_for_confirms)
        [queue.message_count, channel.unconfirmed_set.size]
      end

      assert_equal([[50, 0]], counts.uniq)
    end
  end

  # A server that stands still confirms nothing: the task waits, and the others run.
  def test_confirms_that_come_late
    reactor do
      channel = self.channel
      channel.confirm_select
      name = queue_of(channel).name
      waiting = nil
      server.paused do
        channel.default_exchange.publish("late", routing_key: name)
        waiting = go { channel.wait_for_confirms }
        assert_others_run { sleep(0.2) }

        refute_predicate(waiting, :finished?)
      end

      assert(waiting.value)
    end
  end

  # A task that waits for a message ends at once; the message that comes later is for the next one.
  def test_a_cancelled_consumer_loses_nothing
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      channel = self.channel
      queue = queue_of(channel)
      inbox = Thread::Queue.new
      queue.subscribe { |_, _, text| inbox << text }
      first = Heddle.spawn { inbox.pop }
      first.wait(0.05)
      first.cancel.wait(20)
      queue.publish("kept")

      assert_equal("kept", inbox.pop(timeout: 20))
    end
  end

  # A message that is cut off in the midst would leave the connection, which all channels share, waiting for the rest.
  def test_publishing_in_a_shield
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      connection = connect
      channel, other = Array.new(2) { connection.create_channel }
      queue = queue_of(other)
      publishing = server.paused do
        task = Heddle.spawn do
          Heddle.shield { channel.default_exchange.publish("x" * 20_000_000, routing_key: queue.name) }
        end
        task.wait(0.1)
        task.cancel
      end
      publishing.wait(20)
      queue.publish("after it")
      sizes = Array.new(2) { wait_until("a message") { queue.pop.last }.bytesize }

      assert_equal([true, [8, 20_000_000]], [publishing.cancelled?, sizes.sort])
    end
  end

  # An RPC as bunny's own guide has it: 20 at once over one reply queue, each answer to the one who has asked.
  def test_requests_and_replies
    reactor do
      connection = connect
      serve(connection, asked = queue_of(connection.create_channel))
      values, = all_at_once(20) { |number| request(connection, asked.name, number) }

      assert_equal(Array.new(20) { |number| (2 * number).to_s }, values)
    end
  end

  def serve(connection, asked)
    answers = connection.create_channel.default_exchange
    asked.subscribe do |_, asking, text|
      answers.publish((2 * Integer(text)).to_s, routing_key: asking.reply_to, correlation_id: asking.correlation_id)
    end
  end

  def request(connection, name, number)
    channel = connection.create_channel
    inbox = Thread::Queue.new
    replies = queue_of(channel)
    replies.subscribe { |_, properties, text| inbox << text if properties.correlation_id == "id #{number}" }
    channel.default_exchange.publish(number.to_s, routing_key: name, reply_to: replies.name,
                                                  correlation_id: "id #{number}")
    inbox.pop(timeout: 20)
  ensure
    channel&.close
  end

  # A fault of bunny's, with threads and Timeout as well: the next get on the same channel takes the answer of the
  # cancelled get. The remedy is a new channel.
  def test_after_a_cancelled_get_the_channel_is_closed
    heddle_only("they are not cancelled")
    Heddle.run(backend: backend) do
      connection = connect(late_port)
      channel, other = fill_two_queues(connection)
      asking = Heddle.spawn { channel.basic_get("late=0.6,a") }
      asking.wait(0.05)
      asking.cancel.wait(20)

      assert_equal("from a", channel.basic_get("b").last, "bunny keeps them apart: the guide need not warn any more")
      assert_equal("from b", other.basic_get("b").last)
    end
  end

  def fill_two_queues(connection)
    channels = Array.new(2) { connection.create_channel }
    { "late=0.6,a" => "from a", "b" => "from b" }.each do |name, text|
      channels.first.queue(name, exclusive: true).publish(text)
    end
    2.times { channels.first.queue("b", exclusive: true).publish("from b") }
    channels
  end
end
