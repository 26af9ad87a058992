# frozen_string_literal: true

# Answers each request after this number of seconds, and prints its port: http_server.rb SECONDS

require "heddle"
require "socket"

WAIT = Float(ARGV.fetch(0))
ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nOK"

Heddle.run do
  server = TCPServer.new("127.0.0.1", 0)
  server.listen(4096)
  $stdout.puts(server.addr[1])
  $stdout.flush
  loop do
    Heddle.spawn(server.accept, isolated: true) do |socket|
      while (line = socket.gets) && line != "\r\n"
      end
      sleep(WAIT)
      socket.write(ANSWER)
    ensure
      socket.close
    end
  end
end
