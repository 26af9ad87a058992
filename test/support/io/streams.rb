# frozen_string_literal: true

module TestSupport
  # The kinds of stream that the contract's matrix runs over.
  module Streams
    SOCKETS = %w[tcp unix socket].freeze
    PLAIN = ["pipe", *SOCKETS].freeze
    ALL = [*PLAIN, "ssl"].freeze

    def self.included(base)
      base.extend(ClassMethods)
    end

    # Macros of the test classes.
    module ClassMethods
      # Defines a test per kind of stream. The body runs in a reactor, with a reader, a writer and the kind.
      def on_streams(description, kinds = ALL, &body)
        kinds.each do |kind|
          define_method("test_#{description.tr(" ", "_")}_on_#{kind}") do
            reactor { instance_exec(*stream_pair(kind), kind, &body) }
          end
        end
      end
    end

    # Two connected ends, [reader, writer], closed after the test. Call it inside of the reactor.
    def stream_pair(kind)
      case kind
      when "pipe" then pipe
      when "tcp" then tcp_pair
      when "unix" then socket_pair
      when "socket" then Socket.pair(:UNIX, :STREAM, 0).each { |io| keep(io) }
      when "ssl" then ssl_pair
      else raise ArgumentError, kind
      end
    end

    # A TCP server on a free port of 127.0.0.1, closed after the test.
    def tcp_server = keep(TCPServer.new("127.0.0.1", 0))

    # A server of which the queue is full: the next connection attempt gets no answer.
    def silent_server
      server = keep(Socket.new(:INET, :STREAM))
      server.bind(Addrinfo.tcp("127.0.0.1", 0))
      server.listen(0)
      loop do
        client = keep(Socket.new(:INET, :STREAM))
        client.connect_nonblock(server.local_address, exception: false)
        break unless client.wait_writable(0.1)
      end
      server
    end

    # Keeps what a socket takes in below 1 MB, so that a test can fill it.
    def small_buffers(socket)
      socket.setsockopt(:SOCKET, :RCVBUF, 65_536)
      socket.setsockopt(:SOCKET, :SNDBUF, 65_536)
      socket
    end

    def tcp_pair
      server = small_buffers(tcp_server)
      client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))
      [keep(server.accept), small_buffers(client)]
    ensure
      server&.close
    end

    # The client is the reader: an end that is closed before it has read the other's session tickets would reset
    # the connection.
    def ssl_pair
      require "support/certificate" # OpenSSL takes a while to load, and few tests need it
      plain_server, plain_client = tcp_pair
      server = keep(OpenSSL::SSL::SSLSocket.new(plain_server, Certificate.server_context))
      client = keep(OpenSSL::SSL::SSLSocket.new(plain_client, Certificate.client_context))
      [server, client].each { |socket| socket.sync_close = true }
      shake = go { server.accept }
      client.connect
      shake.value
      [client, server]
    end

    # OpenSSL says goodbye to the other end only if there is room for that in the socket.
    def close_with_room(writer)
      writer.to_io.wait_writable
      writer.close
    end

    # Writes without waiting until nothing more fits; the number of bytes.
    def fill(writer, chunk = "x" * 65_536)
      total = 0
      tcp = writer.to_io.is_a?(TCPSocket)
      settled = !tcp
      loop do
        count = writer.write_nonblock(chunk, exception: false)
        if count != :wait_writable
          total += count
          settled = !tcp
        elsif settled
          return total
        else
          # TCP moves bytes on to the reader's buffer a moment later, at the latest when its timer of 0.2 s fires.
          settled = !writer.to_io.wait_writable(0.3)
        end
      end
    end

    # Reads +count+ bytes in pieces.
    def drain(reader, count)
      count -= reader.readpartial([count, 65_536].min).bytesize while count > 0
    end
  end
end
