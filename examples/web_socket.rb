# frozen_string_literal: true

# A chat in the browser: a page, and a WebSocket for each of its visitors. What one of them says is sent to all. It
# needs the gems heddle-server and websocket-driver.
#
#   ruby examples/web_socket.rb [PORT]
#
# Then open http://127.0.0.1:9292 in two windows.

require "optparse"

usage = OptionParser.new("usage: ruby web_socket.rb [PORT]")
begin
  usage.parse!
  port = Integer(ARGV[0] || 9292)
rescue OptionParser::ParseError, ArgumentError => e
  abort "#{e.message}\n#{usage.banner}"
end

require "heddle/server"
require "websocket/driver"

# One visitor. websocket-driver knows the protocol: it reads the environment, and calls write with bytes for the client.
class Visitor
  UNSENT = 100 # messages

  attr_reader :env

  def initialize(env, io)
    @env = env
    @io = io
    @outbox = Thread::SizedQueue.new(UNSENT)
    @driver = WebSocket::Driver.rack(self)
  end

  def url = "ws://#{env["HTTP_HOST"]}#{env["REQUEST_URI"]}"

  def write(bytes) = @io.write(bytes)

  # It does not wait: who has not read the last hundred messages is left out.
  def tell(text)
    @outbox.push(text, timeout: 0) unless @outbox.closed?
  end

  # Serves the visitor until the end, and yields each message.
  def serve
    @driver.on(:message) { |event| yield event.data }
    @driver.on(:close) { @io.close }
    @driver.start
    Heddle.spawn { send_messages }
    loop { @driver.parse(@io.readpartial(16_384)) }
  rescue IOError, SystemCallError
    nil # the visitor has left
  ensure
    @outbox.close
    @io.close
  end

  private

  def send_messages
    while (text = @outbox.pop)
      @driver.text(text)
    end
  rescue IOError, SystemCallError
    nil
  end
end

PAGE = <<~HTML
  <!doctype html>
  <meta charset="utf-8">
  <title>Chat</title>
  <form><input autofocus placeholder="Say something"></form>
  <ul></ul>
  <script>
    const socket = new WebSocket(`ws://${location.host}/chat`)
    const input = document.querySelector("input")
    socket.onmessage = (event) => {
      const line = document.createElement("li")
      line.textContent = event.data
      document.querySelector("ul").append(line)
    }
    document.forms[0].onsubmit = (event) => {
      event.preventDefault()
      socket.send(input.value)
      input.value = ""
    }
  </script>
HTML

visitors = []
app = lambda do |env|
  next [200, { "content-type" => "text/html" }, [PAGE]] unless WebSocket::Driver.websocket?(env)

  visitor = Visitor.new(env, env["rack.hijack"].call)
  visitors << visitor
  begin
    visitor.serve { |text| visitors.each { |other| other.tell(text) } }
  ensure
    visitors.delete(visitor)
  end
  [-1, {}, []] # (nobody gets this answer: the connection belongs to the application)
end

Heddle.run do
  server = Heddle::Server.new(app, bind: "tcp://127.0.0.1:#{port}")
  stop = Thread::Queue.new
  %i[INT TERM].each { |signal| trap(signal) { stop << true } }
  Heddle.spawn(background: true, name: "stop") { stop.pop && server.stop(grace: 1) }
  warn "http://127.0.0.1:#{server.port}"
  server.run
end
warn "the chat has ended"
