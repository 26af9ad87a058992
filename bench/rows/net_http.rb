# frozen_string_literal: true

require "net/http"
require "socket"

module Bench
  # Unchanged Net::HTTP in 20 tasks, and with heddle/accelerate/net_http. The server is another process: what counts is
  # the CPU time of the client.
  module NetHTTP
    LIB = File.expand_path("../lib", ROOT)
    TASKS = 20
    SMALL = "Hello, world!"
    LARGE = ("0123456789abcdef" * 16 * 1024).freeze
    FIELDS = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sun, 01 Mar 2026 12:00:00 GMT\r\nServer: bench\r\n" \
             "X-Request-Id: 0123456789abcdef\r\n"

    class << self
      # The server in a process of its own, which ends with this one.
      def start(**)
        $LOAD_PATH.unshift(LIB) unless $LOAD_PATH.include?(LIB)
        require "heddle"
        require "heddle/cli/demo/child"
        server = Heddle::CLI::Demo::Child.new { |child, link| serve(child, link) }
        port = server.hear[:port]
        parent = Process.pid
        at_exit { server.close if Process.pid == parent }
        [{ "BENCH_HTTP_PORT" => port.to_s }, {}]
      end

      # 20 tasks, each with a connection that it keeps.
      # @return [Integer] how many answers had the right size
      def keep(peer, number, path, size)
        in_tasks(peer, number) do |share|
          Net::HTTP.start("127.0.0.1", port) { |http| Array.new(share) { http.get(path).body.bytesize }.count(size) }
        end
      end

      # With a connection for each request.
      def connect(peer, number, host)
        uri = URI("http://#{host}:#{port}/small")
        in_tasks(peer, number) { |share| Array.new(share) { Net::HTTP.get(uri).bytesize }.count(SMALL.bytesize) }
      end

      private

      def port = Integer(ENV.fetch("BENCH_HTTP_PORT"))

      def in_tasks(peer, number)
        right = []
        peer.run { TASKS.times { peer.spawn { right << yield(number / TASKS) } } }
        right.sum
      end

      def serve(child, link)
        Thread.new { link.read.then { exit!(0) } } # the parent has ended
        server = TCPServer.new("127.0.0.1", 0)
        server.listen(1024)
        child.tell(port: server.local_address.ip_port)
        Heddle.run { loop { Heddle.spawn(server.accept, isolated: true) { |socket| answer(socket) } } }
      end

      def answer(socket)
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        while (request = socket.gets("\r\n\r\n"))
          body = request.start_with?("GET /large") ? LARGE : SMALL
          close = request.match?(/^connection: close/i)
          last = "Connection: close\r\n" if close
          socket.write("#{FIELDS}#{last}Content-Length: #{body.bytesize}\r\n\r\n#{body}")
          break if close
        end
      rescue SystemCallError
        nil # the client has gone
      ensure
        socket.close
      end
    end

    Bench.group("net_http", "Net::HTTP in #{TASKS} tasks, the CPU time of the client",
                peers: %w[heddle heddle-accelerated threads async carbon_fiber], rounds: 7, best: true,
                figures: %i[cpu wall], setup: method(:start)) do
      options = { unit: "request", multiple: TASKS, expect: ->(n) { n } }
      Bench.row("net_http_keep_alive", "a small GET, on a connection that is kept",
                operations: 10_000, **options) { |peer, n| keep(peer, n, "/small", SMALL.bytesize) }
      Bench.row("net_http_download", "256 KB, on a connection that is kept",
                operations: 2000, **options) { |peer, n| keep(peer, n, "/large", LARGE.bytesize) }
      Bench.row("net_http_get", "Net::HTTP.get, by address", operations: 1000, **options) do |peer, n|
        connect(peer, n, "127.0.0.1")
      end
      Bench.row("net_http_get_by_name", "Net::HTTP.get, by name", operations: 1000, **options) do |peer, n|
        connect(peer, n, "localhost")
      end
    end
  end
end
