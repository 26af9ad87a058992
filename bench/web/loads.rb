# frozen_string_literal: true

require "socket"

module Bench
  module Web
    # What came of a load: +rate+ a second; +median+ and +worst+ (the 99th percentile) in seconds; +cpu+ in seconds for
    # each; +memory+ in MB; +note+: what went wrong.
    Result = Struct.new(:rate, :median, :worst, :cpu, :memory, :note, keyword_init: true)

    # wrk asks for a path.
    class Requests
      UNITS = { "us" => 1e-6, "ms" => 1e-3, "s" => 1.0 }.freeze

      def initialize(path, connections)
        @path = path
        @connections = connections
      end

      def run(server, seconds)
        wrk(server, 1) # YJIT has compiled it
        before = server.cpu
        said = wrk(server, seconds)
        used = server.cpu - before
        count = said[/(\d+) requests in/, 1].to_i
        Result.new(rate: said[%r{Requests/sec: *([\d.]+)}, 1].to_f, median: time(said, 50), worst: time(said, 99),
                   cpu: used / [count, 1].max, memory: server.memory, note: said[/(Socket errors|Non-2xx).*/])
      end

      private

      def wrk(server, seconds)
        IO.popen(["wrk", "-t1", "-c#{@connections}", "-d#{seconds}s", "--latency",
                  "http://127.0.0.1:#{server.port}#{@path}"], err: %i[child out], &:read)
      end

      def time(said, percent)
        number, unit = said.match(/^ *#{percent}% +([\d.]+)(us|ms|s)/)&.captures
        number && (number.to_f * UNITS.fetch(unit))
      end
    end

    # Clients that listen to events. The times are from the write of an event to its arrival.
    class Events
      def initialize(clients)
        @clients = clients
      end

      def run(server, seconds)
        sockets = Array.new(@clients) { TCPSocket.new("127.0.0.1", server.port) }
        sockets.each { |socket| socket.write("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n") }
        listen(sockets, 2)
        before = server.cpu
        delays, heard = listen(sockets, seconds)
        Result.new(rate: delays.size / seconds.to_f, median: delays[delays.size / 2],
                   worst: delays[delays.size * 99 / 100], cpu: (server.cpu - before) / [delays.size, 1].max,
                   memory: server.memory, note: heard < @clients ? "#{heard} of #{@clients} clients hear" : nil)
      ensure
        sockets&.each(&:close)
      end

      private

      # @return [Array(Array<Float>, Integer)] the times, sorted, and how many have heard something
      def listen(sockets, seconds)
        heard = {}.compare_by_identity
        delays = []
        deadline = now + seconds
        while (left = deadline - now).positive? && (ready, = IO.select(sockets, nil, nil, left))
          ready.each do |socket|
            bytes = socket.read_nonblock(65_536, exception: false)
            next unless bytes.is_a?(String)

            time = now
            bytes.scan(/data: ([\d.]+)/) { delays << (time - Regexp.last_match(1).to_f) }
            heard[socket] = true
          end
        end
        [delays.sort, heard.size]
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # Clients that have asked once, and keep their connection: how many bytes each of them takes.
    class Idle
      def initialize(clients)
        @clients = clients
      end

      def run(server, _seconds)
        before = server.memory
        sockets = Array.new(@clients) { ask(TCPSocket.new("127.0.0.1", server.port)) }
        sleep(3)
        memory = server.memory
        answered = sockets.sample(100).count { |socket| answered?(socket) }
        Result.new(rate: (memory - before) * 1024 / @clients, memory: memory,
                   note: answered < 100 ? "#{answered} of 100 are still served" : nil)
      ensure
        sockets&.each(&:close)
      end

      private

      def answered?(socket)
        ask(socket)
        true
      rescue SystemCallError, IOError, RuntimeError
        false
      end

      def ask(socket)
        socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        socket.wait_readable(20) or raise "no answer"
        socket.readpartial(4096).include?(" 200 ") or raise "another answer"
        socket
      end
    end
  end
end
