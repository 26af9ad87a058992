# frozen_string_literal: true

require "socket"
require "stringio"
require "support/certificate"
require "support/clients"

module TestSupport
  # Tests of Heddle::Server: each starts one in a thread of its own, with an application of its own, and talks to it in
  # bytes. In the body of a contract: include TestSupport::RackServer
  module RackServer
    # What came back.
    Answer = Struct.new(:status, :headers, :body)

    def setup
      super
      heddle_only("it is a server for tasks")
      missing = %w[protocol-rack protocol-http1].filter_map { |gem| Clients.load(gem, gem.tr("-", "/")) }.first
      skip(missing) if missing
      require "heddle/server"
      require "rack/lint"
      @sockets = []
      @stop = Thread::Queue.new
      @errors = Thread::Queue.new
      Heddle.on_error { |error,| @errors << error }
    end

    def teardown
      @sockets&.each(&:close)
      @gate&.close
      @server_thread&.then { stop_server }
      Heddle.on_error(nil)
      super
    end

    # @return [Heddle::Server] with this application
    # @param lint [Boolean] whether it is checked that both sides keep to the Rack specification
    # @param time_slice [Float, nil] see Heddle.run
    def serve(bind: "tcp://127.0.0.1:0", lint: true, time_slice: nil, **options, &app)
      server = nil
      started = Thread::Queue.new
      @server_thread = Thread.new do
        Thread.current.report_on_exception = false
        Heddle.run(backend:, time_slice:) do
          server = Heddle::Server.new(lint ? Rack::Lint.new(app) : app, bind: bind, **options)
          Heddle.spawn(background: true) { (grace = @stop.pop) && server.stop(grace: grace) }
          started << true
          server.run
        end
      ensure
        started.close
      end
      started.pop or @server_thread.join
      @server = server
    end

    # Serves an application whose requests wait for #open_gate; those with another path than "/" do not wait.
    def serve_behind_gate(**)
      @begun = Thread::Queue.new
      @gate = Thread::Queue.new
      serve(**) do |env|
        env["PATH_INFO"] == "/" and @begun.push(true) && @gate.pop
        text
      end
    end

    def wait_for_begun(count = 1) = count.times { assert(@begun.pop(timeout: 60), "a request does not begin") }

    def open_gate = @gate.close

    # Idle connections have no task.
    def tasks_of_connections
      text = StringIO.new
      Heddle.dump(text)
      text.string.scan(/"connection of [\d.:]+"|"frames"/).size
    end

    # @return [String] for bind: of a server that speaks TLS
    def tls_address
      folder = tempdir
      files = %w[certificate key].map do |name|
        File.join(folder, name).tap { |path| File.write(path, Certificate.public_send(name).to_pem) }
      end
      format("ssl://127.0.0.1:0?cert=%s&key=%s", *files)
    end

    def stop_server(grace: 5)
      @stop << grace
      @server_thread.join
    ensure
      @server_thread = nil
    end

    # @return [Socket] connected to the server
    def connect(port = @server.port)
      TCPSocket.new("127.0.0.1", port).tap { |socket| @sockets << socket }
    end

    # @return [Socket] of a client that takes little before it is read
    def connect_slowly
      Socket.new(:INET, :STREAM).tap do |socket|
        @sockets << socket
        socket.setsockopt(:SOCKET, :RCVBUF, 4096)
        socket.connect(Addrinfo.tcp("127.0.0.1", @server.port))
      end
    end

    # @param request [String] its lines, without their ends
    def ask(socket, request, body = "")
      socket.write(request.lines(chomp: true).join("\r\n"), "\r\n\r\n", body)
      answer(socket)
    end

    def get(path = "/", socket = connect, headers: "")
      ask(socket, "GET #{path} HTTP/1.1\nhost: localhost#{headers}")
    end

    # Reads an answer; nil at the end of the connection.
    def answer(socket, head: false)
      status = socket.gets("\r\n") or return
      headers = {}
      while (line = socket.gets("\r\n", chomp: true)) && !line.empty?
        name, value = line.split(": ", 2)
        headers[name] = headers.key?(name) ? "#{headers[name]}, #{value}" : value
      end
      code = Integer(status.split[1])
      Answer.new(code, headers, head || [204, 304].include?(code) ? "" : body_of(headers, socket))
    end

    def body_of(headers, socket)
      return chunks(socket).join if headers["transfer-encoding"] == "chunked"

      headers["content-length"] ? socket.read(Integer(headers["content-length"])) : socket.read
    end

    def chunks(socket)
      found = []
      until (size = Integer(socket.gets("\r\n", chomp: true), 16)).zero?
        found << socket.read(size)

        assert_equal("\r\n", socket.read(2))
      end

      assert_equal("\r\n", socket.gets("\r\n"))
      found
    end

    # The server has closed this connection.
    def assert_closed(socket)
      assert_equal("", socket.read.to_s, "more came")
    rescue Errno::ECONNRESET
      nil
    end

    def text(status = 200, body = "hello", **headers)
      [status, { "content-type" => "text/plain", **headers.transform_keys(&:to_s) }, [body]]
    end
  end
end
