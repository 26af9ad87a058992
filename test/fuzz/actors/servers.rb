# frozen_string_literal: true

require_relative "streams"
require "support/certificate"

module Fuzz
  # A server with several acceptors, which are interrupted, and its clients: each connection is served once.
  class Connections < StreamActor
    private

    def perform
      server = keep(chance(0.7) ? TCPServer.new("127.0.0.1", 0) : unix_server)
      served = []
      count = steps(25)
      accepting = Array.new(number(1..3)) { go("accepts") { accept_until_closed(server, served) } }
      finish(*Array.new(count) { |i| go("connects") { visit(server, i) } })
      server.close
      finish(*accepting)
      check(served.sort == (0...count).to_a) { "served were #{served.sort}" }
    end

    def unix_server
      folder = keep(Dir.mktmpdir("heddle-fuzz"))
      UNIXServer.new(File.join(folder, "s"))
    end

    def accept_until_closed(server, served)
      loop do
        state, client = raised_into(0.4) { chance(0.7) ? server.accept : accept_nonblock(server) }
        next unless state == :done && client

        go("serves") { serve(client, served) }
      end
    rescue IOError
      nil # closed
    end

    def accept_nonblock(server)
      client = server.accept_nonblock(exception: false)
      client == :wait_readable ? (server.wait_readable && nil) : client
    end

    def serve(client, served)
      number = Integer(client.gets)
      pause
      client.write("#{number * 2}\n")
      served << number
    ensure
      client.close
    end

    def visit(server, number)
      pause
      socket = keep(server.is_a?(UNIXServer) ? UNIXSocket.new(server.path) : connect(server.addr[1]))
      socket.write("#{number}\n")
      check(socket.gets == "#{number * 2}\n", "a wrong answer")
      check(socket.read == "", "more than an answer")
      socket.close
    end

    def connect(port)
      case pick(:new, :socket, :tcp)
      when :new then TCPSocket.new("127.0.0.1", port)
      when :tcp then Socket.tcp("127.0.0.1", port)
      else Socket.new(:INET, :STREAM).tap { |socket| socket.connect(Addrinfo.tcp("127.0.0.1", port)) }
      end
    end
  end

  # Datagrams between two sockets of this machine, where none is lost as long as few are on the way.
  class Datagrams < Actor
    private

    def perform
      ours, theirs = Array.new(2) { keep(UDPSocket.new).tap { |socket| socket.bind("127.0.0.1", 0) } }
      theirs.connect("127.0.0.1", ours.addr[1])
      ours.connect("127.0.0.1", theirs.addr[1])
      count = steps(60)
      answering = go("answers") { count.times { answer(theirs) } }
      count.times do |i|
        ours.send(i.to_s, 0)
        pause if chance(0.2)
        check(receive(ours) == (i + 1).to_s, "a wrong answer")
      end
      finish(answering)
    end

    def answer(socket) = socket.send((Integer(receive(socket)) + 1).to_s, 0)

    def receive(socket)
      loop do
        state, text = raised_into(0.3) { pick(socket.method(:recv), socket.method(:recvmsg)).call(100) }
        return Array(text).first if state == :done
      end
    end
  end

  # TLS in both directions.
  class Tls < StreamActor
    private

    def perform
      plain = tcp_pair
      server = OpenSSL::SSL::SSLSocket.new(plain[0], TestSupport::Certificate.server_context)
      client = OpenSSL::SSL::SSLSocket.new(plain[1], TestSupport::Certificate.client_context)
      shaking = go("accepts") { server.accept }
      client.connect
      finish(shaking)
      sent = bytes(100_000)
      writing = go("writes") do
        server.write(sent)
        server.close
        plain[0].close
      end
      same(read_parts(client), sent)
      finish(writing)
      client.close
    end

    def read_parts(client)
      got = +""
      loop do
        state, text = raised_into(0.3) { client.readpartial(number(1..20_000)) }
        got << text if state == :done
      rescue EOFError
        return got
      end
    end
  end

  # Names that are resolved, and waits for them that are interrupted.
  class Resolving < Actor
    private

    def perform
      steps(8).times do
        state, list = raised_into(0.5, ANY) { Addrinfo.getaddrinfo("localhost", 80, nil, :STREAM) }
        check(state == :raised || list.any? { |one| one.ip_address =~ /\A(127\.|::1)/ }, "localhost is elsewhere")
      end
    end
  end
end
