# frozen_string_literal: true

require "socket"
require "support/certificate"

module TestSupport
  # A small HTTP or HTTPS server on 127.0.0.1, of plain threads. /sleep/0.3 answers after 0.3 seconds, / with the
  # request's method, number on its connection, and size.
  class HttpServer
    # In seconds: a client that keeps a block of #paused from going on would wait for ever.
    LIMIT = 30

    attr_reader :port

    def initialize(tls: false)
      @server = TCPServer.new("127.0.0.1", 0)
      @server.listen(128)
      @port = @server.addr[1]
      @context = Certificate.server_context if tls
      @sockets = []
      @threads = []
      @closing = false
      @acceptor = Thread.new { accept }
    end

    # (A thread that is killed in the midst of an accept loses the descriptor. So it gets one more client.)
    def close
      @closing = true
      TCPSocket.new("127.0.0.1", @port).close
      @acceptor.join
      @threads.each(&:kill).each(&:join)
      [@server, *@sockets].each(&:close)
    end

    # While the block runs, nothing is answered.
    # @raise [RuntimeError] the block has not ended within 30 s
    def paused
      pause = @pause = Thread::Queue.new
      value = yield
      raise "the others have not run for #{LIMIT} s" if @late

      value
    ensure
      @pause = nil
      pause.close
    end

    # @return [Integer] the connections whose question waits for the end of the pause
    def unread = @pause&.num_waiting.to_i

    private

    # Called before a question is answered, by each thread.
    def wait_for_the_end_of_a_pause
      pause = @pause or return
      pause.pop(timeout: LIMIT)
      @late = true unless pause.closed?
    end

    def accept
      loop do
        @sockets << (socket = @server.accept)
        break if @closing

        @threads << Thread.new { serve(socket) }
      end
    end

    def serve(socket)
      socket = OpenSSL::SSL::SSLSocket.new(socket, @context).tap(&:accept) if @context
      (1..).each { |number| respond(socket, number) || break }
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
      nil # the client has gone
    ensure
      socket.close
    end

    def respond(socket, number)
      request = socket.gets or return
      length = 0
      while (line = socket.gets) && line != "\r\n"
        length = line[/\d+/].to_i if line.match?(/\Acontent-length:/i)
      end
      body = socket.read(length)
      wait_for_the_end_of_a_pause
      sleep(request[%r{/sleep/([\d.]+)}, 1].to_f)
      text = "#{request[/\w+/]} #{number} #{body.bytesize}"
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: #{text.bytesize}\r\n\r\n#{text}")
    end
  end
end
