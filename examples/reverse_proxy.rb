# frozen_string_literal: true

# A reverse proxy for HTTP/1: it hands each request to one of several servers, to each in turn, and skips servers that
# cannot be reached. It passes bodies on as they come, so a body may have any size, and need not end.
#
#   ruby examples/reverse_proxy.rb [PORT] [HOST:PORT ...]
#
# Ctrl-C ends it.

require "heddle"
require "optparse"
require "socket"

# Takes requests on one side and hands them on at the other.
class ReverseProxy
  SECONDS = 30 # for each read and write
  # The first three concern only one connection. The proxy sets X-Forwarded-For by itself.
  DROPPED = /^(?:Connection|Keep-Alive|Proxy-Connection|X-Forwarded-For):.*\r\n/i

  def initialize(servers)
    @servers = servers.map { |server| server.split(":") }
  end

  def run(port)
    TCPServer.open("127.0.0.1", port) do |listener|
      warn "http://127.0.0.1:#{listener.addr[1]}/ -> #{@servers.map { |server| server.join(":") }.join(", ")}"
      Heddle.run do
        loop do
          client = listener.accept
          Heddle.spawn(name: "request", isolated: true) { serve(client) }
        end
      end
    end
  end

  private

  def serve(client)
    client.timeout = SECONDS
    head = client.gets("\r\n\r\n", 65_536)
    return unless head&.end_with?("\r\n\r\n")

    server = connect or return refuse(client, "502 Bad Gateway")
    server.write(head.gsub(DROPPED, "").delete_suffix("\r\n"),
                 "X-Forwarded-For: #{client.remote_address.ip_address}\r\nConnection: close\r\n\r\n")
    relay(client, server)
  rescue SystemCallError, IOError
    nil # one of the two has gone
  ensure
    [client, server].each { |socket| socket&.close }
  end

  # @return [Socket, nil] to the first server that can be reached, beginning with the server whose turn it is
  def connect
    (@servers = @servers.rotate).each do |host, port|
      return Socket.tcp(host, port, connect_timeout: 2).tap { |socket| socket.timeout = SECONDS }
    rescue SystemCallError, SocketError, IO::TimeoutError
      next
    end
    nil
  end

  # Sends the body of the request while the answer comes, and stops when the whole answer has come.
  def relay(client, server)
    Heddle.run do
      Heddle.spawn(background: true) do
        IO.copy_stream(client, server)
      rescue SystemCallError, IOError
        nil # the server does not read the whole body
      end
      first = first_part(client, server) or next
      client.write(first)
      IO.copy_stream(server, client)
    end
  end

  def first_part(client, server)
    server.readpartial(16_384)
  rescue IO::TimeoutError
    refuse(client, "504 Gateway Timeout")
  rescue SystemCallError, EOFError
    refuse(client, "502 Bad Gateway")
  end

  def refuse(client, status)
    client.write("HTTP/1.1 #{status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    nil
  end
end

usage = OptionParser.new("usage: ruby reverse_proxy.rb [PORT] [HOST:PORT ...]")
begin
  usage.parse!
  port, *servers = ARGV
  port = Integer(port || 8080)
rescue OptionParser::ParseError, ArgumentError => e
  abort "#{e.message}\n#{usage.banner}"
end

begin
  ReverseProxy.new(servers.empty? ? ["127.0.0.1:3000"] : servers).run(port)
rescue SystemCallError, SocketError => e
  abort e.message
rescue Interrupt
  warn "ended by Ctrl-C"
end
