# frozen_string_literal: true

require "socket"

module TestSupport
  # A small HTTP server on 127.0.0.1, of plain threads, that answers what a block says. It closes each connection.
  #
  #   site = Site.new { |request| request.path == "/" ? "hello" : [404, "nothing here"] }
  class Site
    # The head as it came, its path, and the body.
    Request = Struct.new(:head, :path, :body)

    attr_reader :port, :most

    # @yieldparam request [Request] in a thread of the request's own
    # @yieldreturn [String, Array] the body, or the status, the body and more lines of the head
    def initialize(&answer)
      @answer = answer
      @lock = Mutex.new
      @requests = []
      @running = @most = 0
      @server = TCPServer.new("127.0.0.1", 0)
      @server.listen(128)
      @port = @server.addr[1]
      @threads = [Thread.new { accept }]
    end

    def url(path = "/") = "http://127.0.0.1:#{port}#{path}"

    # @return [Array<Request>] the requests that came until now
    def requests = @lock.synchronize { @requests.dup }

    def close
      @threads.each(&:kill).each(&:join)
      @server.close
    end

    private

    def accept
      loop do
        socket = @server.accept
        @threads << Thread.new { serve(socket) }
      end
    end

    def serve(socket)
      head = socket.gets("\r\n\r\n") or return
      request = Request.new(head, head[/\A\S+ (\S+)/, 1], socket.read(head[/^content-length: (\d+)/i, 1].to_i))
      respond(socket, note(request) { @answer.call(request) })
    rescue SystemCallError, IOError
      nil # the client has gone
    ensure
      socket.close
    end

    # Counts it as under way until its answer is known: then the client may send the next one.
    def note(request)
      @lock.synchronize do
        @requests << request
        @most = [@most, @running += 1].max
      end
      yield
    ensure
      @lock.synchronize { @running -= 1 }
    end

    def respond(socket, answer)
      status, body, *lines = answer.is_a?(String) ? [200, answer] : answer
      lines.unshift("HTTP/1.1 #{status} Status", "Content-Length: #{body.bytesize}", "Connection: close")
      socket.write("#{lines.join("\r\n")}\r\n\r\n#{body}")
    end
  end
end
