# frozen_string_literal: true

# Attacks `heddle serve` in several ways, and says what a good client sees meanwhile, and how much memory the server
# takes: bin/ruby bench/floods.rb --help

require "optparse"
require "rbconfig"
require "socket"
require "tmpdir"
$LOAD_PATH.unshift(File.expand_path("../test", __dir__), File.expand_path("../heddle-server/test", __dir__))
require "support/serve_program"

module Bench
  # The command.
  class Floods
    ROOT = File.expand_path("..", __dir__)
    APP = <<~RUBY
      LARGE = ["x" * 10_000_000].freeze
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/wait" then sleep(1)
        when "/upload" then env["rack.input"].read
        when "/large" then next [200, { "content-type" => "text/plain" }, LARGE]
        end
        [200, { "content-type" => "text/plain" }, ["hello"]]
      end)
    RUBY
    GET = "GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n"

    # Frames of HTTP/2 in bytes.
    module Frames
      PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

      module_function

      def frame(type, flags, stream, payload = "")
        [payload.bytesize >> 16, payload.bytesize & 0xffff, type, flags, stream].pack("CnCCN") + payload.b
      end

      # @return [String] the head of a request, with a field whose name has a capital letter if it is malformed
      def head(stream, malformed: false)
        frame(1, malformed ? 5 : 4, stream, "\x82\x86\x84\x01\x01a#{"\x40\x01A\x01b" if malformed}".b)
      end

      def begin_connection = PREFACE + frame(4, 0, 0)
      def pings = begin_connection + (frame(6, 0, 0, "12345678") * 20_000)
      def settings = begin_connection + (frame(4, 0, 0) * 20_000)

      def resets
        begin_connection + Array.new(20_000) { |i| head(1 + (2 * i)) + frame(3, 0, 1 + (2 * i), "\0\0\0\x08") }.join
      end

      def malformed = begin_connection + Array.new(20_000) { |i| head(1 + (2 * i), malformed: true) }.join

      def small_data = begin_connection + head(1) + (frame(0, 0, 1, "x") * 100_000)
    end

    # Each is called in a process of its own with the port, and does its harm until it is killed.
    KINDS = {
      "nothing" => ->(_) { sleep },
      "5,000 connections that say nothing" => ->(port) { keep(5000, port) { sleep } },
      "1,000 heads that come a byte a second" => lambda do |port|
        keep(1000, port) { |all| (GET % "/slow").each_char { |char| sleep(1) && all.each { |one| put(one, char) } } }
      end,
      "500 clients that read nothing of 10 MB" => lambda do |port|
        keep(500, port) { |all| all.each { |one| put(one, GET % "/large") } && sleep }
      end,
      "3,000 requests at once that wait" => lambda do |port|
        keep(3000, port) { |all| all.each { |one| put(one, GET % "/wait") } && sleep(1) }
      end,
      "new connections" => ->(port) { loop { TCPSocket.new("127.0.0.1", port).close } },
      "chunks of one byte" => lambda do |port|
        head = "POST /upload HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        send_again(port, head + ("1\r\nx\r\n" * 100_000))
      end,
      "requests in a pipeline" => ->(port) { send_again(port, (GET % "/") * 5000) },
      "HTTP/2: pings" => ->(port) { send_again(port, Frames.pings) },
      "HTTP/2: settings" => ->(port) { send_again(port, Frames.settings) },
      "HTTP/2: requests that are reset" => ->(port) { send_again(port, Frames.resets) },
      "HTTP/2: malformed heads" => ->(port) { send_again(port, Frames.malformed) },
      "HTTP/2: DATA of one byte" => ->(port) { send_again(port, Frames.small_data) }
    }.freeze

    class << self
      # Opens connections, and opens them again when the block has returned.
      def keep(number, port)
        loop do
          sockets = Array.new(number) { TCPSocket.new("127.0.0.1", port) }
          yield(sockets)
          sockets.each(&:close)
        end
      end

      # Sends bytes that may not be taken.
      def put(socket, bytes)
        socket.write_nonblock(bytes, exception: false)
      rescue SystemCallError
        nil
      end

      # Sends all on one connection after another, as fast as the server takes it, and reads what comes.
      def send_again(port, bytes)
        loop do
          TCPSocket.open("127.0.0.1", port) do |socket|
            reader = Thread.new { loop { socket.readpartial(65_536) } }
            reader.report_on_exception = false
            socket.write(bytes)
            reader.join(0.2)
          end
        rescue SystemCallError, IOError
          nil
        end
      end
    end

    # @param seconds [Integer] for each kind
    # @param attackers [Integer] processes
    # @param kinds [Regexp]
    # @param arguments [Array<String>] for the server
    def initialize(seconds, attackers, kinds, arguments)
      @seconds = seconds
      @attackers = attackers
      @kinds = KINDS.keys.grep(kinds)
      @arguments = arguments
    end

    # @return [Boolean] whether each good request was answered
    def call
      puts "| what attacks | good requests | p50 ms | p99 ms | not answered | memory after, MB | at most |"
      puts "|---|---|---|---|---|---|---|"
      @kinds.map { |kind| one(kind) }.all?
    end

    private

    def one(kind)
      serve do |server|
        ask(server, 1)
        attackers = Array.new(@attackers) { fork { attack(kind, server.port) } }
        sleep(2) # all connections are open
        times, lost, most = ask(server, @seconds)
        attackers.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
        puts format("| %s | %d | %.1f | %.1f | %d | %.0f | %.0f |", kind, times.size, times[times.size / 2].to_f * 1e3,
                    times[times.size * 99 / 100].to_f * 1e3, lost, memory(server), most)
        lost.zero?
      end
    end

    def attack(kind, port)
      $stderr.reopen(File::NULL)
      self.class.instance_exec(port, &KINDS.fetch(kind))
    end

    # A request every 10 ms, on a connection of its own: from another address than that of the attackers.
    #
    # @return [Array(Array<Float>, Integer, Float)] times, requests without an answer, and the most memory
    def ask(server, seconds)
      times = []
      lost = most = looked = 0
      ends = now + seconds
      while (began = now) < ends
        answered?(server.port) ? times << (now - began) : lost += 1
        most = [most, memory(server)].max.tap { looked = now } if now > looked + 0.25
        sleep(0.01)
      end
      [times.sort, lost, most]
    end

    def answered?(port)
      Socket.tcp("127.0.0.1", port, "127.0.0.2", 0, connect_timeout: 10) do |socket|
        socket.write(GET % "/")
        socket.wait_readable(10) && socket.readpartial(4096).start_with?("HTTP/1.1 200")
      end
    rescue SystemCallError, IOError
      false
    end

    # @return [Float] MB of the server's processes, without what they share with other programs
    def memory(server)
      processes = [server.pid, *File.read("/proc/#{server.pid}/task/#{server.pid}/children").split]
      processes.sum { |pid| File.read("/proc/#{pid}/smaps_rollup")[/^Pss: *(\d+)/, 1].to_i } / 1024.0
    end

    def serve
      Dir.mktmpdir do |dir|
        File.write(File.join(dir, "config.ru"), APP)
        server = TestSupport::ServeProgram.new(RbConfig.ruby, "-I#{ROOT}/heddle-server/lib", "#{ROOT}/exe/heddle",
                                               "serve", "-p", "0", *@arguments, chdir: dir, env: { "PWD" => dir })
        yield(server)
      ensure
        server&.close
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

_, hard = Process.getrlimit(:NOFILE)
Process.setrlimit(:NOFILE, hard, hard)
seconds = 5
attackers = 1
kinds = //
OptionParser.new do |on|
  on.banner = "usage: bin/ruby bench/floods.rb [options] [-- options of heddle serve]\n" \
              "Attacks a server, and exits with 1 if a good client was not answered meanwhile."
  on.on("--seconds N", Integer, "for each kind (5)") { |value| seconds = value }
  on.on("--attackers N", Integer, "processes that attack (1)") { |value| attackers = value }
  on.on("--kinds PATTERN", Regexp, "those that match, of: #{Bench::Floods::KINDS.keys.join("; ")}") { |v| kinds = v }
end.parse!

exit(Bench::Floods.new(seconds, attackers, kinds, ARGV).call)
