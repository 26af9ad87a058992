# frozen_string_literal: true

require "support/clients"
require "support/serve_program"

module TestSupport
  # For tests of `heddle serve` as a program: a folder with an application, and the programs that were started in it.
  module ServeCase
    EXE = File.expand_path("../../../exe/heddle", __dir__)
    APP = <<~RUBY
      name = File.read("name")
      run(lambda do |env|
        File.write("begun", "")
        sleep(Float(env["QUERY_STRING"])) unless env["QUERY_STRING"].empty?
        exit!(3) if env["PATH_INFO"] == "/die"
        [200, { "content-type" => "text/plain" }, ["\#{name} \#{Process.pid}"]]
      end)
    RUBY

    def setup
      super
      missing = %w[protocol-rack protocol-http1].filter_map { |gem| Clients.load(gem, gem.tr("-", "/")) }.first
      skip(missing) if missing
      @dir = tempdir
      write("config.ru", APP)
      write("name", "one")
      @programs = []
    end

    def teardown
      @programs&.each(&:close)
      super
    end

    def path(name) = File.join(@dir, name)

    def write(name, text) = File.write(path(name), text)

    # With an address of its own unless bind is nil.
    def serve(*arguments, bind: "tcp://127.0.0.1:0", command: nil, dir: @dir, env: {}, **options)
      command ||= [*ruby_command, EXE, "serve", *(["--bind", bind] if bind)]
      ServeProgram.new(*command, *arguments, chdir: dir, env: { "PWD" => dir, **env }, **options)
        .tap { |program| @programs << program }
    end

    def workers(count, *arguments, **)
      serve("--workers", count.to_s, *arguments, until_said: /is ready/, times: count, **)
    end

    # A program that serves in one process, or in several.
    def serve_in(count, ...) = count.zero? ? serve(...) : workers(count, ...)

    def name_and_pid(program) = program.get.body.split

    def wait_until_begun = wait_until("the request has begun") { File.exist?(path("begun")) }

    def alive?(pid)
      Process.kill(0, pid) && !File.read("/proc/#{pid}/stat").include?(") Z ")
    rescue Errno::ESRCH, Errno::ENOENT
      false
    end

    # What each of some clients has got while the block ran, one request after another.
    #
    # @param until_said [String, nil] each client goes on after the block until it has got this answer
    # @return [Array<String>] the first word of each answer, or the error
    def while_asked(program, clients: 3, until_said: nil)
      done = false
      found = Array.new(clients) { [] }
      askers = found.map do |own|
        Thread.new { own << ask(program) until done }
      end
      wait_until("each has an answer") { found.none?(&:empty?) }
      yield
      wait_until("each has got #{until_said}") { found.all? { |own| own.last == until_said } } if until_said
      done = true
      askers.each(&:join)
      found.flatten
    end

    def ask(program)
      program.get("/?0.01").body.split.first
    rescue SystemCallError, IOError, Net::ProtocolError, Timeout::Error => e
      e.class.name
    end

    def asked_at(address)
      Socket.open(:UNIX, :STREAM) do |socket|
        socket.connect(Addrinfo.unix(address))
        socket.write("GET / HTTP/1.0\r\n\r\n")
        socket.read
      end
    end

    def assert_said(program, text) = assert_match(text, program.said.join)

    def assert_ends(program)
      program.signal(:TERM)

      assert_predicate(program.wait, :success?, program.said.join)
    end
  end
end
