# frozen_string_literal: true

require "openssl"
require "socket"

module Bench
  # Servers and clients as programs have them: HTTP under wrk, TLS, Redis and PostgreSQL through their clients.
  module Servers
    BODY = "Hello, world!"
    ANSWER = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: #{BODY.bytesize}\r\n\r\n#{BODY}".freeze
    HTTP_CONNECTIONS = 64
    TLS_CONNECTIONS = 20
    # All peers have theirs at the same time: PostgreSQL takes 120.
    CLIENTS = 10

    class << self
      # A small HTTP/1.1 server with keep-alive: a task for each connection. It ends when the block of the plain thread
      # beside it has ended, who is given its port.
      # @return [Object] what that block returned
      def serve_http(peer, &)
        server = TCPServer.new("127.0.0.1", 0)
        server.listen(1024)
        port = server.addr[1]
        stopped = false
        client = Thread.new do
          Thread.current.report_on_exception = false # it is raised below
          yield(port)
        ensure
          stopped = true
          TCPSocket.new("127.0.0.1", port).close # so that the accept returns
        end
        peer.run do
          until stopped
            socket = server.accept
            peer.spawn { answer_requests(socket) }
          end
          server.close
        end
        client.value
      end

      # Runs wrk for this number of whole seconds.
      # @return [Array(Integer, String)] how many answers it got, and what went wrong
      def load(port, seconds)
        command = [ENV.fetch("BENCH_WRK"), "-t1", "-c#{HTTP_CONNECTIONS}", "-d#{seconds}s", "http://127.0.0.1:#{port}/"]
        said = IO.popen(command, err: %i[child out], &:read)
        [said[/(\d+) requests in/, 1].to_i, said[/^ *(Socket errors|Non-2xx).*/].to_s]
      end

      # @return [String] the body of an answer
      def get(port)
        TCPSocket.open("127.0.0.1", port) do |socket|
          socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
          socket.readpartial(4096).split("\r\n\r\n", 2).last
        end
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

      # @return [OpenSSL::SSL::SSLContext]
      def tls_context
        OpenSSL::SSL::SSLContext.new.tap do |context|
          context.key = OpenSSL::PKey::EC.generate("prime256v1")
          context.cert = certificate(context.key)
        end
      end

      # Echoes until the end of a TLS connection.
      def echo_tls(socket, context)
        tls = OpenSSL::SSL::SSLSocket.new(socket, context)
        tls.accept
        buffer = String.new(capacity: 512)
        loop { tls.write(tls.readpartial(512, buffer)) }
      rescue EOFError
        tls.close
        socket.close
      end

      # So many round trips on a connection of its own.
      # @return [Integer] how many answers were right
      def ping_tls(port, number, message)
        socket = TCPSocket.new("127.0.0.1", port)
        tls = OpenSSL::SSL::SSLSocket.new(socket)
        tls.connect
        buffer = String.new(capacity: 512)
        same = 0
        number.times do
          tls.write(message)
          same += 1 if tls.readpartial(512, buffer) == message
        end
        tls.close
        same
      ensure
        socket.close
      end

      # @return [PG::Connection] to the server of this run
      def connect_to_postgres
        require "pg"
        PG.connect(host: "127.0.0.1", port: ENV.fetch("BENCH_POSTGRES_PORT"), user: "heddle", dbname: "postgres")
      end

      # So many tasks, each with a connection of its own. The connections stay for the next turn.
      # @return [Integer] how many answers were right
      def ask(peer, number, connect)
        @clients ||= Array.new(CLIENTS) { connect.call }
        right = 0
        peer.measure do
          peer.run do
            @clients.each do |client|
              peer.spawn { (number / CLIENTS).times { |i| right += 1 if yield(client, i) } }
            end
          end
        end
        right
      end

      private

      def answer_requests(socket)
        while (line = socket.gets)
          socket.write(ANSWER) if line == "\r\n"
        end
      rescue SystemCallError, IOError
        nil # wrk resets its connections when its time is over
      ensure
        socket.close
      end
    end

    Bench.group("servers", "Servers and clients") do
      Bench.row("http", "HTTP/1.1 server, TCPServer and gets, 64 connections of wrk",
                unit: "request", operations: 20_000, needs: %i[wrk], warm_up: false,
                expect: ->(_) { [BODY, ""] }) do |peer, n|
        serve_http(peer) do |port|
          body = get(port)
          peer.done, trouble = load(port, (n / 20_000.0).ceil)
          [body, trouble]
        end
      end

      Bench.row("tls_echo", "TLS echo, 20 connections, 512 bytes",
                unit: "round trip", operations: 20_000, multiple: TLS_CONNECTIONS, expect: ->(n) { n }) do |peer, n|
        server = TCPServer.new("127.0.0.1", 0)
        context = tls_context
        message = "m" * 512
        right = 0
        peer.run do
          peer.spawn do
            TLS_CONNECTIONS.times { server.accept.then { |socket| peer.spawn { echo_tls(socket, context) } } }
            server.close
          end
          TLS_CONNECTIONS.times do
            peer.spawn { ping_tls(server.addr[1], n / TLS_CONNECTIONS, message).then { |same| right += same } }
          end
        end
        right
      end

      Bench.row("redis", "Redis, SET and GET, redis-client, #{CLIENTS} connections",
                unit: "command pair", operations: 10_000, multiple: CLIENTS, needs: %i[redis],
                expect: ->(n) { n }) do |peer, n|
        connect = lambda do
          require "redis-client"
          RedisClient.config(host: "127.0.0.1", port: ENV.fetch("BENCH_REDIS_PORT")).new_client.tap { _1.call("PING") }
        end
        ask(peer, n, connect) do |client, i|
          client.call("SET", client.object_id, i)
          client.call("GET", client.object_id) == i.to_s
        end
      end

      Bench.row("postgres", "PostgreSQL, SELECT of a number, pg, #{CLIENTS} connections",
                unit: "query", operations: 10_000, multiple: CLIENTS, needs: %i[postgres],
                expect: ->(n) { n }) do |peer, n|
        ask(peer, n, method(:connect_to_postgres)) { |client, i| client.exec("SELECT #{i}").getvalue(0, 0) == i.to_s }
      end
    end
  end
end
