# frozen_string_literal: true

require "socket"

module Bench
  module Web
    # What came of a load: +rate+ a second; +median+ and +worst+ (the 99th percentile) in seconds; +cpu+ in seconds for
    # each; +memory+ in MB; +spread+: how often the requests of the least busy connection go into those of the busiest
    # one; +note+: what went wrong, or what else was done.
    Result = Struct.new(:rate, :median, :worst, :cpu, :memory, :spread, :note, keyword_init: true)

    # What all loads have in common: the application, and a path at which it answers when it is ready.
    class Load
      PLAIN = File.expand_path("config.ru", __dir__)
      RAILS = File.expand_path("rails.ru", __dir__)
      # @return [String] a config.ru
      def application = PLAIN
      # @return [String]
      def path = "/"
      # @return [Array<String>] gems that the application needs
      def gems = []

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # A path is asked for, on a number of connections that stay open.
    class KeptConnections < Load
      # @return [String]
      attr_reader :path

      def initialize(path, connections)
        super()
        @path = path
        @connections = connections
      end
    end

    # wrk asks.
    class Requests < KeptConnections
      UNITS = { "us" => 1e-6, "ms" => 1e-3, "s" => 1.0 }.freeze

      def run(server, seconds)
        warm_up(server)
        before = server.cpu
        said = wrk(server, seconds)
        used = server.cpu - before
        count = said[/(\d+) requests in/, 1].to_i
        Result.new(rate: said[%r{Requests/sec: *([\d.]+)}, 1].to_f, median: time(said, 50), worst: time(said, 99),
                   cpu: used / [count, 1].max, memory: server.memory, note: said[/(Socket errors|Non-2xx).*/])
      end

      private

      # YJIT has compiled it then.
      def warm_up(server) = wrk(server, 1)

      def wrk(server, seconds)
        IO.popen(["wrk", "-t1", "-c#{@connections}", "-d#{seconds}s", "--latency",
                  "http://127.0.0.1:#{server.port}#{@path}"], err: %i[child out], &:read)
      end

      def time(said, percent)
        number, unit = said.match(/^ *#{percent}% +([\d.]+)(us|ms|s)/)&.captures
        number && (number.to_f * UNITS.fetch(unit))
      end
    end

    # wrk asks for a page of the Rails application.
    class Pages < Requests
      GEMS = %w[railties activerecord sqlite3].freeze

      def application = RAILS
      def gems = GEMS

      private

      # A page of Rails has much more to compile.
      def warm_up(server) = wrk(server, 6)
    end

    # Clients that keep their connections. Each asks again when it has its answer.
    class Clients < KeptConnections
      LENGTH = /^content-length: *(\d+)/i

      def run(server, seconds)
        ask(server, 1) # YJIT has compiled it
        sleep(0.5) # (the last requests are answered then)
        before = server.cpu
        counts, delays, @others = ask(server, seconds)
        least, most = counts.minmax
        Result.new(rate: delays.size / seconds.to_f, median: delays[delays.size / 2],
                   worst: delays[delays.size * 99 / 100],
                   cpu: (server.cpu - before) / [delays.size, 1].max, memory: server.memory,
                   spread: most.fdiv([least, 1].max), note: ("a connection got no answer" if least.zero?))
      end

      private

      # @return [Array<String>] the path of each connection. Connections with another path than the load do not count
      def paths = [@path] * @connections

      # @return [Array(Array<Integer>, Array<Float>, Integer)] the answers of each connection, the times that they took,
      #   sorted, and the answers of the connections that do not count
      def ask(server, seconds)
        begun = {}
        sockets = paths.to_h { |path| [TCPSocket.new("127.0.0.1", server.port), path] }
        counts = sockets.transform_values { 0 }
        sockets.each { |socket, path| begun[socket] = send_to(socket, path) }
        delays = []
        ends = now + seconds
        while (left = ends - now).positive? && (ready, = IO.select(sockets.keys, nil, nil, left))
          ready.each do |socket|
            next unless whole?(socket)

            delays << (now - begun[socket]) if sockets[socket] == @path
            counts[socket] += 1
            begun[socket] = send_to(socket, sockets[socket])
          end
        end
        own, others = counts.partition { |socket, _| sockets[socket] == @path }.map { |part| part.map(&:last) }
        [own, delays.sort, others.sum]
      ensure
        sockets&.each_key(&:close)
      end

      def send_to(socket, path)
        socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        (@answers ||= {})[socket] = +""
        now
      end

      # Reads what has come, and returns whether the answer is whole.
      def whole?(socket)
        answer = @answers[socket] << socket.readpartial(65_536)
        head, body = answer.split("\r\n\r\n", 2)
        return false unless body

        length = head[LENGTH, 1]
        length ? body.bytesize >= length.to_i : answer.end_with?("0\r\n\r\n")
      end
    end

    # Clients of a path, beside clients of another one, whose requests compute for long. The figures are of the former.
    class Beside < Clients
      # @return [String] a config.ru
      attr_reader :application
      # @return [Array<String>] gems that the application needs
      attr_reader :gems

      # @param slow [Integer] how many clients ask for the slow path
      def initialize(path, connections, slow, slow_path, application: PLAIN, gems: [])
        super(path, connections)
        @slow = slow
        @slow_path = slow_path
        @application = application
        @gems = gems
      end

      def run(server, seconds)
        super.tap do |result|
          result.cpu = nil # it is that of both
          result.note = [result.note, format("%.1f slow/s", @others / seconds.to_f)].compact.join(", ")
        end
      end

      private

      def paths = ([@slow_path] * @slow) + super
    end

    # Small requests, beside clients that upload. The figures are those of the small ones.
    class Uploads < Clients
      SIZE = 1_000_000

      # @param number [Integer] of clients with small requests
      # @param uploads [Integer] of clients that upload
      def initialize(number, uploads)
        super("/", number)
        @uploads = uploads
      end

      def run(server, seconds)
        reader, writer = IO.pipe
        uploader = fork { upload(server, reader, writer) }
        writer.close
        began = now
        result = super
        Process.kill(:TERM, uploader)
        uploader = Process.wait(uploader) && nil
        count = reader.read.bytesize
        result.cpu = nil # it is that of both
        result.note = [result.note, format("%d uploads/s", count / (now - began))].compact.join(", ")
        result
      ensure
        Process.kill(:TERM, uploader) && Process.wait(uploader) if uploader
        reader&.close
      end

      private

      # Writes a byte for each upload.
      def upload(server, reader, writer)
        reader.close
        trap(:TERM) { exit!(0) }
        body = "x" * SIZE
        Array.new(@uploads) do
          Thread.new do
            socket = TCPSocket.new("127.0.0.1", server.port)
            loop do
              socket.write("POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: #{SIZE}\r\n\r\n", body)
              answer = socket.readpartial(65_536)
              answer << socket.readpartial(65_536) until answer.match?(/\h{64}/)
              writer.write(".")
            end
          rescue SystemCallError, EOFError
            retry # with a new connection
          end
        end.each(&:join)
      end
    end

    # Clients that listen to events. The times are from the write of an event to its arrival.
    class Events < Load
      def initialize(clients)
        super()
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
    end

    # Clients that have asked once, and keep their connection: how many bytes each of them takes.
    class Idle < Load
      def initialize(clients)
        super()
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
