# frozen_string_literal: true

# bin/test: takes 4 s, 0.4 of a core

require_relative "../test_helper"
require "net/http"
require "support/clients"
require "support/examples"

# A browser as far as websocket-driver goes.
class WebSocketBrowser
  attr_reader :url, :heard

  def initialize(socket, port)
    @socket = socket
    @url = "ws://127.0.0.1:#{port}/chat"
    @heard = []
    @driver = WebSocket::Driver.client(self)
    @driver.on(:message) { |event| @heard << event.data }
    @driver.start
    listen until @driver.state == :open
  end

  def write(bytes) = @socket.write(bytes)
  def say(text) = @driver.text(text)

  # @return [Boolean] false at the end
  def listen
    @driver.parse(@socket.readpartial(1000))
    true
  rescue EOFError
    false
  end

  def close
    @driver.close
    nil while listen
  end
end

contract "WebSocketExample" do
  include TestSupport::Examples

  def setup
    super
    missing = [%w[protocol-http1 protocol/http1], %w[protocol-rack protocol/rack],
               %w[websocket-driver websocket/driver]].filter_map { |names| TestSupport::Clients.load(*names) }.first
    skip(missing) if missing
    @program = start_example("web_socket", 0)
    @port = Integer(heard(@program, %r{http://127\.0\.0\.1:(\d+)})[1])
  end

  def visit = WebSocketBrowser.new(keep(TCPSocket.new("127.0.0.1", @port)), @port)

  def test_each_message_goes_to_all
    assert_includes(Net::HTTP.get("127.0.0.1", "/", @port), "new WebSocket")
    ann = visit
    bob = visit
    ann.say("hello")
    bob.listen while bob.heard.empty?
    bob.say("hi")
    ann.listen until ann.heard.size == 2

    assert_equal([["hello"], %w[hello hi]], [bob.heard, ann.heard])
    bob.close
    ann.say("still there")
    ann.listen until ann.heard.size == 3
    @program.signal(:TERM)

    assert_equal([0, "the chat has ended"], [ended(@program).exitstatus, @program.err.lines.last.chomp])
  end
end
