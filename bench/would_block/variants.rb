# frozen_string_literal: true

require "openssl"
require "socket"
require "tmpdir"

module Bench
  # The operations that bench/would_block.rb measures: each would block, whenever it is called.
  module WouldBlock
    # goal::  how many times `exception: false` the raising form may cost at most; nil: no goal of its own
    # depth:: frames below the call
    # call::  the call, as source: both forms are compiled into loops, as programs have them
    # make::  returns the IO of the call
    Variant = Struct.new(:name, :title, :goal, :depth, :call, :make) do
      def raising = format(call, "").sub(", )", ")")

      def silent = format(call, "exception: false")
    end

    VARIANTS = {} # rubocop:disable Style/MutableConstant

    class << self
      def variant(name, title, call, goal: nil, depth: 0, &make)
        VARIANTS[name] = Variant.new(name, title, goal, depth, call, make)
      end

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

      # Writes until nothing more fits. (TCP moves bytes on to the reader's buffer later, and has room again.)
      def fill(io)
        ["x" * 65_536, "x"].each { |text| nil until io.write_nonblock(text, exception: false) == :wait_writable }
        io
      end

      private

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

    # The workload of Ruby Bug #6154.
    read = "io.read_nonblock(10, %s)"
    variant("socket", "read_nonblock, TCP", read, goal: 2.4) { tcp_pair.first }
    variant("socket_100", "read_nonblock, TCP, 100 frames deep", read, goal: 2.4, depth: 100) { tcp_pair.first }
    variant("unix", "read_nonblock, UNIX", read, goal: 2.4) { unix_pair.first }
    variant("unix_100", "read_nonblock, UNIX, 100 frames deep", read, goal: 2.4, depth: 100) { unix_pair.first }
    variant("buffer", "read_nonblock, TCP, one buffer", "io.read_nonblock(10, @buffer, %s)", goal: 2.4) do
      tcp_pair.first
    end
    variant("pipe", "read_nonblock, pipe", read, goal: 2.0) { pipe.first }
    variant("pipe_100", "read_nonblock, pipe, 100 frames deep", read, goal: 2.0, depth: 100) { pipe.first }
    variant("ssl", "read_nonblock, SSLSocket", read) { ssl_pair.first }
    variant("accept", "accept_nonblock, TCP", "io.accept_nonblock(%s)") { TCPServer.new("127.0.0.1", 0) }
    variant("connect", "new Socket, connect_nonblock, close", "connect(io, %s)") { TCPServer.new("127.0.0.1", 0) }
    variant("recv", "recv_nonblock, TCP", "io.recv_nonblock(10, %s)") { tcp_pair.first }
    variant("recvfrom", "recvfrom_nonblock, UDP", "io.recvfrom_nonblock(10, %s)") do
      UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    end
    variant("recvmsg", "recvmsg_nonblock, UNIX", "io.recvmsg_nonblock(10, %s)") { unix_pair.first }
    variant("sendmsg", "sendmsg_nonblock, UNIX", "io.sendmsg_nonblock('x', %s)") { fill(unix_pair.first) }
    variant("write", "write_nonblock, UNIX", "io.write_nonblock('x', %s)") { fill(unix_pair.first) }
    variant("write_pipe", "write_nonblock, pipe", "io.write_nonblock('x', %s)") { fill(pipe.last) }
  end
end
