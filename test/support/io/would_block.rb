# frozen_string_literal: true

require "support/certificate"

module TestSupport
  # Every way to be told "it would block", each as a method that ends in that exception.
  module WouldBlock
    # All that a program can see of it, but the backtrace.
    SEEN = <<~RUBY
      require "socket"
      require "openssl"
      (one, other), (plain, _silent), (empty, _writer) = UNIXSocket.pair, UNIXSocket.pair, IO.pipe
      listener = Socket.tcp_server_sockets("127.0.0.1", 0).first
      ssl = OpenSSL::SSL::SSLSocket.new(plain)
      [-> { empty.read_nonblock(1) }, -> { one.read_nonblock(1) }, -> { one.recvmsg_nonblock },
       -> { listener.accept_nonblock }, -> { loop { other.write_nonblock("x" * 65_536) } },
       -> { loop { other.sendmsg_nonblock("x" * 65_536) } }, -> { ssl.connect_nonblock },
       -> { Socket.new(:INET, :STREAM).connect_nonblock(listener.local_address) }].each do |call|
        call.call
      rescue IO::WaitReadable, IO::WaitWritable => e
        e.backtrace.clear
        p([e, e.class, e.class.ancestors, e.class.superclass, e.message.encoding, e.message.frozen?, e.frozen?,
           e.to_s, e.inspect, e.cause, e.instance_variables, e.singleton_class.ancestors.first(4), e.methods(false),
           e.respond_to?(:errno) && e.errno, e.detailed_message, e.dup, e.clone.message, e.exception("x").message,
           e == e.dup, Errno::EAGAIN === e, Marshal.load(Marshal.dump(e)).message, e.class.instance_methods(false)])
      end
      [IO, BasicSocket, Socket, TCPServer, UDPSocket, OpenSSL::SSL::SSLSocket].each do |type|
        names = type.instance_methods.grep(/_nonblock\\z/).sort
        # (A method in Ruby cannot take any arguments in quite the form of one in C.)
        p(names.map { |name| type.instance_method(name) }.map do |m|
          [m.name, m.owner, m.arity, m.parameters.any? { |kind,| kind == :rest } ? "any" : m.parameters]
        end)
      end
    RUBY

    # The exception of one of the ways.
    def would_block(name)
      @end = nil
      send(:"would_block_#{name}")

      flunk("#{name} did not block")
    rescue IO::WaitReadable, IO::WaitWritable => e
      e
    end

    private

    def would_block_read_pipe = pipe.first.read_nonblock(10)
    def would_block_read_unix = socket_pair.first.read_nonblock(10)
    def would_block_read_tcp = would_block_tcp_pair.first.read_nonblock(10)
    def would_block_read_into_a_buffer = socket_pair.first.read_nonblock(10, +"")
    def would_block_write_pipe = loop { (@end ||= pipe.last).write_nonblock("x" * 65_536) }
    def would_block_write_unix = loop { (@end ||= socket_pair.first).write_nonblock("x" * 65_536) }
    def would_block_recv = socket_pair.first.recv_nonblock(10)
    def would_block_recvfrom_socket = Socket.pair(:UNIX, :DGRAM).each { |io| keep(io) }.first.recvfrom_nonblock(10)
    def would_block_recvfrom_udp = would_block_udp.recvfrom_nonblock(10)
    def would_block_recvmsg = socket_pair.first.recvmsg_nonblock
    def would_block_sendmsg = loop { (@end ||= socket_pair.first).sendmsg_nonblock("x" * 65_536) }
    def would_block_accept_tcp = keep(TCPServer.new("127.0.0.1", 0)).accept_nonblock
    def would_block_accept_unix = keep(UNIXServer.new(File.join(tempdir, "socket"))).accept_nonblock
    def would_block_accept_socket = would_block_listener.accept_nonblock
    def would_block_connect = keep(Socket.new(:INET, :STREAM)).connect_nonblock(would_block_listener.local_address)
    def would_block_read_ssl = would_block_ssl_pair.first.read_nonblock(10)
    def would_block_write_ssl = loop { (@end ||= would_block_ssl_pair.first).write_nonblock("x" * 65_536) }
    def would_block_connect_ssl = would_block_ssl_ends.first.connect_nonblock
    def would_block_accept_ssl = would_block_ssl_ends.last.accept_nonblock

    def would_block_udp = keep(UDPSocket.new).tap { |socket| socket.bind("127.0.0.1", 0) }

    def would_block_listener
      keep(Socket.new(:INET, :STREAM)).tap do |socket|
        socket.bind(Addrinfo.tcp("127.0.0.1", 0))
        socket.listen(5)
      end
    end

    def would_block_tcp_pair
      server = keep(TCPServer.new("127.0.0.1", 0))
      client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))
      [client, keep(server.accept)]
    end

    # Client and server, before the handshake.
    def would_block_ssl_ends
      client, server = would_block_tcp_pair
      [OpenSSL::SSL::SSLSocket.new(client, Certificate.client_context),
       OpenSSL::SSL::SSLSocket.new(server, Certificate.server_context)].each { |socket| keep(socket) }
    end

    def would_block_ssl_pair
      would_block_ssl_ends.tap do |client, server|
        shake = Thread.new { server.accept }
        client.connect
        shake.join
      end
    end
  end
end
