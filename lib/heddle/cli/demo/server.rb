# frozen_string_literal: true

require "socket"

module Heddle
  module CLI
    class Demo
      # The demo's HTTP server: it answers `GET /delay/100/7` after 100 ms. It runs on Heddle itself, in a process of
      # its own, and must be so cheap that the client's time is measured.
      class Server
        BACKLOG = 4096
        # Answers that are due must not wait for a burst of new connections.
        ACCEPT_BATCH = 64
        REQUEST_MAX = 16_384
        REQUEST_LINE = %r{\AGET /delay/(\d+)/(\d+) HTTP/1\.1\r\n}

        # Returns the body that answers request `number` with a delay of `delay_ms`. No two requests have the same body,
        # so that an answer that reached the wrong request is noticed.
        # @return [String]
        def self.body(delay_ms, number) = "request #{number} answered after #{delay_ms} ms\n"

        # @return [String] the path to request
        def self.path(delay_ms, number) = "/delay/#{delay_ms}/#{number}"

        # @param lifeline [IO] when it becomes readable or reaches its end, serve returns
        def initialize(lifeline:)
          require "heddle"
          @lifeline = lifeline
          @listener = TCPServer.new("127.0.0.1", 0)
          @listener.listen(BACKLOG)
          # The kernel hands over a connection when its request has arrived.
          @listener.setsockopt(:TCP, :DEFER_ACCEPT, 1) if Socket.const_defined?(:TCP_DEFER_ACCEPT)
        end

        # @return [Integer] the port on which the server listens
        def port = @listener.local_address.ip_port

        # Serves until the lifeline ends.
        # @return [void]
        def serve
          Heddle.run do
            serving = Heddle.spawn { Heddle.run { loop { accept_batch } } }
            @lifeline.wait_readable
            serving.cancel
          end
        end

        private

        def accept_batch
          ACCEPT_BATCH.times do
            socket = @listener.accept
            Heddle.spawn { answer(socket) }
          rescue Errno::ECONNABORTED
            nil
          rescue FiberError
            socket.close # the system refuses more: the client will count it
          end
          sleep(0)
        end

        def answer(socket)
          request = +""
          request << socket.readpartial(REQUEST_MAX) until request.end_with?("\r\n\r\n") || request.size > REQUEST_MAX
          socket.write(response(request)) if request.size <= REQUEST_MAX
        rescue EOFError, SystemCallError
          nil # the client has left
        ensure
          socket.close
        end

        def response(request)
          known = REQUEST_LINE.match(request)
          sleep(known[1].to_i / 1000.0) if known
          body = known ? Server.body(known[1], known[2]) : "not found\n"
          "HTTP/1.1 #{known ? "200 OK" : "404 Not Found"}\r\nContent-Type: text/plain\r\n" \
            "Content-Length: #{body.size}\r\nConnection: close\r\n\r\n#{body}"
        end
      end
    end
  end
end
