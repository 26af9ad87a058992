# frozen_string_literal: true

# Shows the load of this machine to everybody who looks at it, as server-sent events (SSE).
#
#   ruby examples/server_sent_events.rb [PORT] [SECONDS]
#
# Look at it with a browser, or with `curl -N http://127.0.0.1:8080/events`. It sends an event to each of its clients
# every second. Ctrl-C ends it.

require "heddle"
require "optparse"
require "socket"

PAGE = <<~HTML
  <h1>load: <span id="load">?</span></h1>
  <script>
    new EventSource("/events").onmessage = (event) => document.getElementById("load").textContent = event.data
  </script>
HTML

# Hands each event to all listeners.
class Channel
  BACKLOG = 10 # events

  def initialize
    @listeners = Set.new
  end

  # @yieldparam event [String] once for each event, until the listener is too slow
  def listen
    events = Thread::SizedQueue.new(BACKLOG)
    @listeners << events
    while (event = events.pop)
      yield event
    end
  ensure
    @listeners.delete(events)
  end

  # It does not wait. A listener that has not taken the last ten events is dropped.
  def publish(event)
    @listeners.reject(&:closed?).each { |events| events.push(event, timeout: 0) || events.close }
  end
end

def serve(client, channel)
  client.timeout = 10 # seconds, for each read and write
  request = client.gets("\r\n\r\n", 8192).to_s
  case request[%r{\AGET (\S+) HTTP/1}, 1]
  when "/events"
    client.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n\r\n")
    channel.listen { |event| client.write("data: #{event}\n\n") }
  when "/"
    client.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n#{PAGE}")
  else
    client.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  end
rescue SystemCallError, IOError
  nil # the client has gone, or refuses the rest
ensure
  client.close
end

usage = OptionParser.new("usage: ruby server_sent_events.rb [PORT] [SECONDS]")
begin
  usage.parse!
  port = Integer(ARGV[0] || 8080)
  seconds = Float(ARGV[1] || 1)
  raise ArgumentError, "the seconds must be positive" unless seconds.positive?
rescue OptionParser::ParseError, ArgumentError => e
  abort "#{e.message}\n#{usage.banner}"
end

channel = Channel.new
begin
  Heddle.run do
    Heddle.every(seconds) { channel.publish(File.read("/proc/loadavg").split.first) }

    TCPServer.open("127.0.0.1", port) do |server|
      warn "http://127.0.0.1:#{server.addr[1]}/"
      loop do
        client = server.accept
        Heddle.spawn(name: "client", isolated: true) { serve(client, channel) }
      end
    end
  end
rescue SystemCallError, SocketError => e
  abort e.message
rescue Interrupt
  warn "ended by Ctrl-C"
end
