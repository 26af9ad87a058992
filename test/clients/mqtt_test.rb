# frozen_string_literal: true

require_relative "../test_helper"
require "socket"
require "support/clients"

# mqtt: it reads in a thread of its own, and the tasks wait for its queue.
contract "Mqtt" do
  heddle_only "it is about tasks"
  extend TestSupport::Clients

  client "mqtt"

  def setup
    super
    return if backend_missing

    @server = TCPServer.new("127.0.0.1", 0)
    @subscribers = Hash.new { |hash, topic| hash[topic] = [] }
    @peers = []
    @threads = [Thread.new { loop { serve(@server.accept) } }]
  end

  def teardown
    @threads&.each { |thread| thread.kill.join }
    [@server, *@peers].compact.each(&:close)
    super
  end

  def test_tasks_with_a_client_each
    got = run do
      Heddle.map(1..5) do |number|
        connected do |client|
          client.subscribe("topic/#{number}")
          3.times { |message| client.publish("topic/#{number}", "#{number} #{message}") }
          Array.new(3) { client.get.last }
        end
      end
    end

    assert_equal((1..5).map { |number| Array.new(3) { |message| "#{number} #{message}" } }, got)
  end

  # The others run while one waits for a message.
  def test_others_run
    message = reactor do
      connected do |client|
        client.subscribe("topic")
        assert_others_run do
          go { others_have_run && connected { |other| other.publish("topic", "late") } }
          client.get.last
        end
      end
    end

    assert_equal("late", message)
  end

  def test_a_timeout_loses_no_message
    messages = run do
      connected do |client|
        client.subscribe("topic")
        assert_raises(Timeout::Error) { Timeout.timeout(0.01) { client.get } }
        client.publish("topic", "one")
        [client.get.last]
      end
    end

    assert_equal(["one"], messages)
  end

  private

  # The block of connect has no value.
  def connected
    value = nil
    MQTT::Client.connect(host: "127.0.0.1", port: @server.addr[1], ack_timeout: 60) { |client| value = yield client }
    value
  end

  # A broker for one process.
  def serve(peer)
    @peers << peer
    @threads << Thread.new do
      nil while handle(MQTT::Packet.read(peer), peer)
    rescue IOError, SystemCallError, MQTT::ProtocolException
      nil # the client has gone
    end
  end

  def handle(packet, peer)
    case packet
    when MQTT::Packet::Connect then peer.write(MQTT::Packet::Connack.new(return_code: 0))
    when MQTT::Packet::Subscribe
      packet.topics.each { |topic,| @subscribers[topic] << peer }
      peer.write(MQTT::Packet::Suback.new(id: packet.id, return_codes: [0]))
    when MQTT::Packet::Publish
      copy = MQTT::Packet::Publish.new(topic: packet.topic, payload: packet.payload)
      @subscribers[packet.topic].each { |one| one.write(copy) }
    end
    !packet.is_a?(MQTT::Packet::Disconnect)
  end
end
