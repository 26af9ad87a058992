# frozen_string_literal: true

# Restarts `heddle serve` again and again under a steady load, and counts the requests that are lost:
# bin/ruby heddle-server/test/soak/restarts.rb --help

require "optparse"
require "rbconfig"
require "socket"
require "tmpdir"
$LOAD_PATH.unshift(File.expand_path("../../../test", __dir__))
require "support/serve_program"

module Soak
  # HUP and USR2 at random moments: while the server is at rest, while Ruby starts, while the application is loaded.
  # Before some of them, by chance, the last restart is complete.
  class Restarts
    ROOT = File.expand_path("../../..", __dir__)
    APP = <<~RUBY
      name = File.read("name")
      longest = Float(ENV.fetch("LONGEST"))
      run(lambda do |env|
        sleep(rand * longest)
        [200, { "content-type" => "text/plain" }, ["\#{env["PATH_INFO"]} \#{name} \#{Process.pid}"]]
      end)
    RUBY
    SIGNALS = %i[HUP USR2].freeze

    # A client that makes one request after another, and what has come of them. It keeps its connection, or has a new
    # one for each request.
    class Client
      # @return [Integer] requests that were answered
      attr_reader :answered
      # @return [Array<String>] what came in place of an answer
      attr_reader :lost
      # @return [Array<Integer>] the processes that had the connections on which requests were lost. It is not known for
      #   a request that was the first one of its connection
      attr_reader :lost_by

      def initialize(port, number, keeps:)
        @port = port
        @number = number
        @keeps = keeps
        @answered = 0
        @lost = []
        @lost_by = []
        @thread = Thread.new { ask until @over }
      end

      def end
        @over = true
        @thread.join
      end

      private

      def ask
        path = "/#{@number}/#{@answered + @lost.size}"
        answer = answer_to(path)
        return lose(answer.inspect) unless answer.include?("\r\n\r\n#{path} ")

        @server = answer[/\d+\z/].to_i if @socket
        @answered += 1
      rescue SystemCallError => e
        lose(e.class.name)
      end

      def lose(what)
        @lost << what
        @lost_by << @server if @server
        leave
      end

      def answer_to(path)
        leave if @socket&.wait_readable(0) # the server has ended it
        @socket ||= TCPSocket.new("127.0.0.1", @port)
        @socket.write("GET #{path} HTTP/1.1\r\nhost: localhost\r\n#{"connection: close\r\n" unless @keeps}\r\n")
        answer = whole_answer
        leave if !@keeps || answer.match?(/^connection: close\r$/i)
        answer
      end

      def whole_answer
        answer = +""
        until answer[/\r\n\r\n(.*)/m, 1]&.then { |body| body.bytesize == answer[/^content-length: (\d+)/i, 1].to_i }
          return answer unless @socket.wait_readable(60) && (bytes = @socket.read_nonblock(4096, exception: false))

          answer << bytes
        end
        answer
      end

      def leave
        @socket&.close
        @socket = @server = nil
      end
    end

    # @param restarts [Integer]
    # @param signals [Array<Symbol>] KILL is for one of the workers
    # @param pause [Float] the longest time between two signals, in seconds
    # @param workers [Integer]
    # @param clients [Integer] of each kind
    # @param work [Float] the longest time that a request takes, in seconds
    # @param random [Random]
    # @param arguments [Array<String>] more of them for the server
    def initialize(restarts:, signals:, pause:, workers:, clients:, work:, random:, arguments:)
      @restarts = restarts
      @signals = signals
      @pause = pause
      @workers = workers
      @clients = clients
      @work = work
      @random = random
      @arguments = arguments
    end

    # @param seconds [Numeric] no signal is sent after this time
    # @return [Array<Client>]
    def call(seconds)
      Dir.mktmpdir do |dir|
        @dir = dir
        File.write(File.join(dir, "config.ru"), APP)
        File.write(File.join(dir, "name"), "first")
        program = serve
        clients = under_load(program) { restart(program, now + seconds) }
        end_of(program)
        @said = program.said
        clients
      ensure
        program&.close
      end
    end

    # @return [Array<Symbol>]
    def sent = @sent ||= []

    # @return [Array<Integer>] the workers that were killed
    def killed = @killed ||= []

    # Signals that come at the same time are one restart.
    #
    # @return [Array(Integer, Integer)] how often a program has begun, and a worker
    def begun = [/listening on/, /is ready/].map { |line| @said.grep(line).size }

    private

    def serve
      waits = @workers.zero? ? {} : { until_said: /is ready/, times: @workers }
      env = { "PWD" => @dir, "LONGEST" => @work.to_s }
      TestSupport::ServeProgram.new(RbConfig.ruby, "-I#{ROOT}/heddle-server/lib", "#{ROOT}/exe/heddle", "serve",
                                    "-p", "0", "--workers", @workers.to_s, *@arguments, chdir: @dir, env:, **waits)
    end

    def under_load(program)
      clients = Array.new(2 * @clients) { |number| Client.new(program.port, number, keeps: number.odd?) }
      yield
      clients
    ensure
      clients&.each(&:end)
    end

    def end_of(program)
      program.signal(:TERM)
      status = program.wait
      return if program.ended_by?(:TERM, status)

      raise "it has not ended well (#{status}): #{program.said.last(20).join}"
    end

    def restart(program, ends)
      while sent.size < @restarts && now < ends
        sent << @signals.sample(random: @random)
        next kill_worker(program) if sent.last == :KILL

        before = ready(program)
        program.signal(sent.last)
        wait(30) { ready(program) >= before + [@workers, 1].max } if @random.rand(2).zero?
        sleep(@random.rand(@pause))
      end
      File.write(File.join(@dir, "name"), "last")
      program.signal(:HUP)
      wait(120) { last_serves?(program) } or raise("the last release does not serve: #{program.said.last(20).join}")
    end

    # Kills a worker that serves. Another one takes its place, at once if the worker has lived for more than a second.
    def kill_worker(program)
      sleep(1.1)
      serving = program.said.join.scan(/\(process (\d+)\) is ready/).flatten.map(&:to_i) - killed
      before = ready(program)
      killed << serving.sample(random: @random)
      Process.kill(:KILL, killed.last)
      wait(30) { ready(program) > before }
    end

    # @return [Boolean] whether this came true
    def wait(seconds)
      ends = now + seconds
      until (found = yield) || now > ends
        sleep(0.02)
      end
      found
    end

    def ready(program) = program.said.grep(@workers.zero? ? /listening on/ : /is ready/).size

    def last_serves?(program)
      program.get("/").body.start_with?("/ last ")
    rescue SystemCallError, EOFError
      false
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

options = { restarts: 200, signals: Soak::Restarts::SIGNALS, pause: 1.0, workers: 2, clients: 2, work: 0.02 }
seconds = 900
seed = Random.new_seed % 1_000_000
OptionParser.new do |on|
  on.banner = "usage: bin/ruby heddle-server/test/soak/restarts.rb [options] [-- options of heddle serve]\n" \
              "Restarts it under load, and exits with 1 if a request was lost. With --kill, a killed worker may lose " \
              "its own requests."
  on.on("--restarts N", Integer, "HUP and USR2, mixed (200)") { |value| options[:restarts] = value }
  on.on("--kill", "kills workers in place of that") { options[:signals] = [:KILL] }
  on.on("--pause N", Float, "the longest time between two of them, in seconds (1)") { |value| options[:pause] = value }
  on.on("--seconds N", Float, "no more of them after this time (900)") { |value| seconds = value }
  on.on("--workers N", Integer, "of the server; 0: one process (2)") { |value| options[:workers] = value }
  on.on("--clients N", Integer, "that keep their connection, and as many that do not (2)") { |v| options[:clients] = v }
  on.on("--work N", Float, "the longest time that a request takes, in seconds (0.02)") { |v| options[:work] = v }
  on.on("--seed N", Integer, "sends the same signals at the same times again") { |value| seed = value }
end.parse!

restarts = Soak::Restarts.new(**options, arguments: ARGV, random: Random.new(seed))
clients = restarts.call(seconds)
lost = clients.flat_map(&:lost)
counts = restarts.sent.tally.map { |name, count| "#{count} #{name}" }.join(", ")
puts "#{restarts.sent.size} restarts (#{counts}; --seed #{seed}): #{clients.sum(&:answered)} requests answered, " \
     "#{lost.size} lost; begun: programs #{restarts.begun.first}, workers #{restarts.begun.last}"
lost.tally.each { |what, count| puts "  #{count}: #{what}" }
exit(restarts.killed.empty? ? lost.empty? : (clients.flat_map(&:lost_by) - restarts.killed).empty?)
