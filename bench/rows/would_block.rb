# frozen_string_literal: true

require "openssl"
require "socket"

module Bench
  # The price of an exception that says "it would block" (Ruby Bug #6154): the raising form of read_nonblock and its kin
  # against `exception: false`, in plain Ruby, with Heddle loaded, and inside of Heddle.run. Each of the operations
  # would block, whenever it is called.
  module WouldBlock
    # Compiles an operation into a loop, as programs have it.
    class Loop
      # @param depth [Integer] frames below the call
      def initialize(io, call, form, depth)
        @io = io
        @depth = depth
        @buffer = +""
        instance_eval(source(call, form), __FILE__, __LINE__)
      end

      # @return what the last of this number of calls returned or raised
      def run(number, depth = @depth) = depth.zero? ? loop(@io, number) : run(number, depth - 1)

      private

      def source(call, form)
        body = "#{call}\nrescue IO::WaitReadable, IO::WaitWritable => last\n" if form == "raising"
        <<~RUBY
          def loop(io, number)
            last = nil
            number.times do
              #{body || "last = #{call}"}
            end
            #{body ? "[last.class.name, last.message]" : "last"}
          end
        RUBY
      end

      def connect(server, **options)
        socket = Socket.new(:INET, :STREAM)
        socket.connect_nonblock(server.local_address, **options)
      ensure
        socket.close
        server.accept_nonblock(exception: false).then { |other| other.close unless other == :wait_readable }
      end
    end

    class << self
      # Two rows of one operation. The goal is how many times `exception: false` of plain Ruby the raising form may cost
      # at most with Heddle loaded.
      def rows(name, title, call, goal: nil, depth: 0, &make)
        io = nil
        { "silent" => "exception: false", "raising" => "" }.each do |form, argument|
          code = format(call, argument).sub(", )", ")")
          compiled = nil
          Bench.row("would_block_#{name}_#{form}", "#{title}, #{form == "silent" ? argument : "raises"}",
                    unit: "call", operations: 2_500, batch: "would_block_#{name}",
                    base: "would_block_#{name}_silent",
                    goal: ({ "loaded" => goal } if goal && form == "raising")) do |peer, n|
            compiled ||= Loop.new(io ||= make.call, code, form, depth)
            last = nil
            peer.run { peer.measure { last = compiled.run(n) } }
            last
          end
        end
      end

      private

      # An IO whose peer is closed would not block: all are kept.
      def keep(*ios) = (@kept ||= []).concat(ios).last(ios.size)

      def tcp_pair
        server = TCPServer.new("127.0.0.1", 0)
        keep(TCPSocket.new("127.0.0.1", server.addr[1]), server.accept)
      end

      def unix_pair = keep(*UNIXSocket.pair)

      def pipe = keep(*IO.pipe)

      # Two ends of a TLS connection.
      def ssl_pair
        client, server = tcp_pair
        context = OpenSSL::SSL::SSLContext.new
        context.key = OpenSSL::PKey::EC.generate("prime256v1")
        context.cert = certificate(context.key)
        server = OpenSSL::SSL::SSLSocket.new(server, context)
        client = OpenSSL::SSL::SSLSocket.new(client)
        shake = Thread.new { server.accept }
        client.connect
        shake.join
        keep(client, server)
      end

      # Writes until nothing more fits. TCP moves bytes on to the reader's buffer later, and has room again.
      def fill(io)
        ["x" * 65_536, "x"].each { |text| nil until io.write_nonblock(text, exception: false) == :wait_writable }
        io
      end

      def certificate(key)
        OpenSSL::X509::Certificate.new.tap do |one|
          one.subject = one.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
          one.public_key = key
          one.not_before = Time.now - 60
          one.not_after = Time.now + 86_400
          one.sign(key, "SHA256")
        end
      end
    end

    Bench.group("would_block", "What it costs that an operation would block",
                peers: %w[plain loaded heddle], rounds: 60, share: true, keep: true, best: true) do
      # The workload of Ruby Bug #6154.
      read = "io.read_nonblock(10, %s)"
      rows("socket", "read_nonblock, TCP", read, goal: 2.4) { tcp_pair.first }
      rows("socket_100", "read_nonblock, TCP, 100 frames deep", read, goal: 2.4, depth: 100) { tcp_pair.first }
      rows("unix", "read_nonblock, UNIX", read, goal: 2.4) { unix_pair.first }
      rows("unix_100", "read_nonblock, UNIX, 100 frames deep", read, goal: 2.4, depth: 100) { unix_pair.first }
      rows("buffer", "read_nonblock, TCP, one buffer", "io.read_nonblock(10, @buffer, %s)", goal: 2.4) do
        tcp_pair.first
      end
      rows("pipe", "read_nonblock, pipe", read, goal: 2.0) { pipe.first }
      rows("pipe_100", "read_nonblock, pipe, 100 frames deep", read, goal: 2.0, depth: 100) { pipe.first }
      rows("ssl", "read_nonblock, SSLSocket", read) { ssl_pair.first }
      rows("accept", "accept_nonblock, TCP", "io.accept_nonblock(%s)") { TCPServer.new("127.0.0.1", 0) }
      rows("connect", "new Socket, connect_nonblock, close", "connect(io, %s)") { TCPServer.new("127.0.0.1", 0) }
      rows("recv", "recv_nonblock, TCP", "io.recv_nonblock(10, %s)") { tcp_pair.first }
      rows("recvfrom", "recvfrom_nonblock, UDP", "io.recvfrom_nonblock(10, %s)") do
        UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
      end
      rows("recvmsg", "recvmsg_nonblock, UNIX", "io.recvmsg_nonblock(10, %s)") { unix_pair.first }
      rows("sendmsg", "sendmsg_nonblock, UNIX", "io.sendmsg_nonblock('x', %s)") { fill(unix_pair.first) }
      rows("write", "write_nonblock, UNIX", "io.write_nonblock('x', %s)") { fill(unix_pair.first) }
      rows("write_pipe", "write_nonblock, pipe", "io.write_nonblock('x', %s)") { fill(pipe.last) }
    end
  end
end
