# frozen_string_literal: true

require "socket"

module Heddle
  module Demo
    # The demo's HTTP server: it answers `GET /delay/100/7` after 100 ms. It runs in a process of its own on one thread,
    # and has to be so cheap that the client is what gets measured.
    #
    # It never watches its connections. The kernel hands over a connection when its request has arrived
    # (TCP_DEFER_ACCEPT), and a connection that waits for its delay to pass needs no watching. So IO.select only ever
    # sees the listener and the few clients whose request comes in pieces, however many thousand are connected.
    #
    # It also runs without RubyGems and without the rest of Heddle; keep it so, it starts in 30 ms.
    class Server
      BACKLOG = 4096
      ACCEPT_BATCH = 64
      REQUEST_MAX = 16_384
      END_OF_REQUEST = "\r\n\r\n"
      REQUEST_LINE = %r{\AGET /delay/(\d+)/(\d+) HTTP/1\.1\r\n}

      # The body that answers request `number` with a delay of `delay_ms`: no two requests have the same one, so that an
      # answer that reached the wrong request is noticed.
      # @return [String]
      def self.body(delay_ms, number)
        "request #{number} answered after #{delay_ms} ms\n"
      end

      # @return [String] the path to ask for
      def self.path(delay_ms, number)
        "/delay/#{delay_ms}/#{number}"
      end

      # The main program of the server's process: prints its port on a line and serves until the lifeline (standard
      # input, a pipe from the process that started it) is closed, in whatever way that process ended.
      # @return [void]
      def self.main
        trap("INT", "IGNORE") # Ctrl-C reaches the whole process group; the starter decides when to stop
        server = new(lifeline: $stdin)
        $stdout.puts(server.port)
        $stdout.flush
        server.serve
      end

      # @param lifeline [IO] when it becomes readable or reaches its end, serve returns
      def initialize(lifeline:)
        @lifeline = lifeline
        @listener = listen
        @watched = [@lifeline, @listener]
        @partial = {} # socket => what it has sent so far
        @due = Hash.new { |queues, delay_ms| queues[delay_ms] = [] } # one queue per delay keeps each in order of time
      end

      # @return [Integer] the port it listens on
      def port
        @listener.local_address.ip_port
      end

      # Serves until the lifeline ends.
      # @return [void]
      def serve
        loop do
          readable, = IO.select(@watched, nil, nil, seconds_until_due)
          break if readable&.include?(@lifeline)

          readable&.each { |io| io.equal?(@listener) ? accept_batch : receive(io) }
          answer_due
        end
      ensure
        close_connections
      end

      private

      def close_connections
        @partial.each_key(&:close)
        @due.each_value { |queue| queue.each { |_, socket, _| socket.close } }
      end

      def listen
        listener = TCPServer.new("127.0.0.1", 0)
        listener.listen(BACKLOG)
        if Socket.const_defined?(:TCP_DEFER_ACCEPT)
          listener.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_DEFER_ACCEPT, 1)
        end
        listener
      end

      # A batch, not all there are: answers that are due must not wait for a burst of new connections.
      def accept_batch
        ACCEPT_BATCH.times do
          socket = @listener.accept_nonblock(exception: false)
          return if socket == :wait_readable

          receive(socket)
        end
      rescue Errno::ECONNABORTED
        nil
      end

      def receive(socket)
        data = socket.read_nonblock(REQUEST_MAX, exception: false)
        return watch(socket, "") if data == :wait_readable
        return drop(socket) if data.nil?

        request = @partial.fetch(socket, "") + data
        if request.end_with?(END_OF_REQUEST) then handle(socket, request)
        elsif request.bytesize > REQUEST_MAX then drop(socket)
        else watch(socket, request)
        end
      rescue SystemCallError
        drop(socket)
      end

      def watch(socket, request)
        @watched << socket unless @partial.key?(socket)
        @partial[socket] = request
      end

      def unwatch(socket)
        @watched.delete(socket) if @partial.delete(socket)
      end

      def drop(socket)
        unwatch(socket)
        socket.close
      end

      def handle(socket, request)
        unwatch(socket)
        return answer(socket, response("404 Not Found", "not found\n")) unless REQUEST_LINE.match(request)

        delay_ms = $1.to_i
        response = response("200 OK", Server.body(delay_ms, $2))
        return answer(socket, response) if delay_ms.zero?

        @due[delay_ms] << [now + (delay_ms / 1000.0), socket, response]
      end

      def response(status, body)
        "HTTP/1.1 #{status}\r\nContent-Type: text/plain\r\nContent-Length: #{body.bytesize}\r\n" \
          "Connection: close\r\n\r\n#{body}"
      end

      # The answer is smaller than any socket buffer: it is written whole or the client is gone.
      def answer(socket, response)
        socket.write_nonblock(response, exception: false)
      rescue SystemCallError
        nil
      ensure
        socket.close
      end

      def answer_due
        @due.each_value do |queue|
          time = now
          while queue.first && queue.first[0] <= time
            _, socket, response = queue.shift
            answer(socket, response)
          end
        end
      end

      def seconds_until_due
        first = @due.each_value.filter_map { |queue| queue.first&.first }.min
        first && [first - now, 0].max
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
