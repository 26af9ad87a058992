# frozen_string_literal: true

require "socket"

# An HTTP server in a thread of the test that answers as the test says.
class AnsweringServer
  # The block gets the number of the request and returns status and body, and the length to claim if not the body's.
  def self.open(&) = new(&)

  def initialize(&answer)
    @answer = answer
    @server = TCPServer.new("127.0.0.1", 0)
    @requests = 0
    @thread = Thread.new { serve }
  end

  def url
    "http://127.0.0.1:#{@server.local_address.ip_port}/path?query"
  end

  # Ends it; returns how many requests there were.
  def close
    @thread.kill.join
    @server.close
    @requests
  end

  private

  def serve
    loop do
      socket = @server.accept
      if socket.gets("\r\n\r\n")&.start_with?("GET /path?query ")
        status, body, length = @answer.call(@requests)
        @requests += 1
        socket.write("HTTP/1.1 #{status} X\r\nContent-Length: #{length || body.bytesize}\r\n\r\n#{body}")
      end
      socket.close
    rescue SystemCallError
      socket&.close
    end
  end
end
