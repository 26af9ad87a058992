# frozen_string_literal: true

require "json"
require "socket"
require_relative "../support/c_program"
require_relative "servers"

module Bench
  # How late the answers of a server are under two loads, which are the same for all peers. The requests come at random
  # times, whether or not earlier ones have been answered, and their time counts from when they were due
  # (bench/c/open_loop.c, a process of its own).
  module Tail
    MESSAGE = "m" * 512
    # A request, and the size of its answer in bytes.
    ECHO = [MESSAGE, MESSAGE.bytesize].freeze
    HTTP = ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", Servers::ANSWER.bytesize].freeze
    # Requests a second: about half of what the slowest scheduler can bear on two cores, and nine tenths of it.
    LOADS = { echo: { half: 30_000, most: 55_000 }, http: { half: 20_000, most: 40_000 },
              query: { half: 4000, most: 8000 } }.freeze
    DATABASE_CONNECTIONS = 10

    class << self
      def setup(**) = CProgram.new("open_loop").compile&.then { |reason| raise Missing, reason }

      # A server for a load, in tasks.
      # @param kind [Symbol] of LOADS; the method of that name answers
      # @param seconds [Numeric] how long to measure
      # @param beside [Proc, nil] what another task does, over and over
      # @return [Integer] how many requests had no answer
      def measure(peer, kind, connections, seconds, beside: nil)
        server = TCPServer.new("127.0.0.1", 0)
        server.listen(4096)
        stopped = false
        client = Thread.new do
          Thread.current.report_on_exception = false # it is raised below
          ask(LOADS.fetch(kind), seconds, server.addr[1], connections, *(kind == :echo ? ECHO : HTTP))
        ensure
          stopped = true
          TCPSocket.new("127.0.0.1", server.addr[1]).close # so that the accept returns
        end
        peer.run do
          peer.spawn { beside.call until stopped } if beside
          accept(peer, server, method(kind)) until stopped
          server.close
        end
        peer.found.merge!(client.value)
        peer.found[:lost]
      end

      def echo(socket)
        buffer = String.new(capacity: MESSAGE.bytesize)
        loop { socket.write(socket.readpartial(MESSAGE.bytesize, buffer)) }
      end

      def http(socket)
        while (line = socket.gets)
          socket.write(Servers::ANSWER) if line == "\r\n"
        end
      end

      # Each request waits for a connection to the database, and makes a query there.
      def query(socket)
        while (line = socket.gets)
          next unless line == "\r\n"

          connection = @database.pop
          connection.exec("SELECT 1")
          @database << connection
          socket.write(Servers::ANSWER)
        end
      end

      # The connections, which stay for the next turn.
      # @return [Thread::Queue]
      def database
        @database ||= Thread::Queue.new(Array.new(DATABASE_CONNECTIONS) { Servers.connect_to_postgres })
      end

      # Computes for this number of seconds, and waits nine times as long.
      def compute(seconds)
        finish = now + seconds
        nil until now > finish
        sleep(seconds * 9)
      end

      # Makes a million objects that stay, once, and then garbage: so a collection has something to do.
      def garbage
        @heap ||= Array.new(1_000_000) { |i| [i] }
        20_000.times { |i| [i.to_s] }
        sleep(0.01)
      end

      private

      def accept(peer, server, serve)
        socket = server.accept
        peer.spawn do
          serve.call(socket)
        rescue SystemCallError, IOError
          nil # the client has gone
        ensure
          socket.close
        end
      end

      # First finds out what the server can bear if each client sends its next request when it has an answer.
      def ask(loads, seconds, *what)
        load(0, seconds, *what) # which does not count
        found = { rate: load(0, seconds, *what).fetch(:rate), lost: 0 }
        loads.each do |name, rate|
          said = load(rate, seconds, *what)
          found[:lost] += said.delete(:lost)
          found.merge!(said.except(:rate).transform_keys { |figure| :"#{name}_#{figure}" })
        end
        found
      end

      def load(rate, seconds, port, connections, request, answer)
        command = [CProgram.new("open_loop").path, port, connections, rate, seconds, answer, request].map(&:to_s)
        JSON.parse(IO.popen(command, &:read), symbolize_names: true)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    Bench.group("tail", "How late answers are", rounds: 3, setup: method(:setup),
                                                peers: %w[heddle-uring heddle-epoll heddle-sliced threads async
                                                          carbon_fiber uringmachine itsi]) do
      row = lambda do |name, title, kind, connections, **options, &beside|
        half, most = LOADS.fetch(kind).values_at(:half, :most)
        also = { most_p50: ["the same, median", "answer"], most_p999: ["the same, 99.9 %", "answer"],
                 most_max: ["the same, the latest", "answer"], half_p99: ["at #{half} a second, 99 %", "answer"],
                 half_p999: ["the same, 99.9 %", "answer"], half_max: ["the same, the latest", "answer"],
                 rate: ["what it can bear", "second"] }
        Bench.row(name, "#{title}, #{connections} clients, #{most} a second, 99 %",
                  unit: "answer", operations: 20, fixed: true, figure: :most_p99, also:, warm_up: false,
                  expect: ->(_) { 0 }, **options) do |peer, tenths|
          database if kind == :query
          measure(peer, kind, connections, tenths / 10.0, beside:)
        end
      end
      [30, 200, 2000].each { |connections| row.call("tail_echo_#{connections}", "echo", :echo, connections) }
      [30, 200, 2000].each { |connections| row.call("tail_http_#{connections}", "HTTP", :http, connections) }
      [30, 200].each do |connections|
        row.call("tail_postgres_#{connections}", "HTTP with a query", :query, connections, needs: %i[postgres])
      end
      row.call("tail_beside_1ms", "HTTP beside a task that computes 1 ms", :http, 200) { compute(0.001) }
      row.call("tail_beside_20ms", "HTTP beside a task that computes 20 ms", :http, 200) { compute(0.02) }
      row.call("tail_beside_gc", "HTTP beside collections of garbage", :http, 200) { garbage }
    end
  end
end
