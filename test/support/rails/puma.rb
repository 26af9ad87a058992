# frozen_string_literal: true

require "json"
require "net/http"

module TestSupport
  # The Rails application of the tests in a Puma of its own, on a free port.
  class Puma
    START = 60 # seconds
    STOP = 60
    # Puma ends in its handler of TERM, during which Ruby runs no other handler. So its standard input asks for this.
    SHOW_THREADS = <<~RUBY
      Thread.new do
        $stdin.read
        Thread.list.each { |thread| $stderr.puts("", thread.inspect, *thread.backtrace) }
      end
    RUBY
    # On Ruby 3.3 and 3.4, IO#close may wait for ever if the main thread writes to the IO in a signal handler just then.
    # Puma's server closes the pipe to which the handler of TERM writes. So it waits until the handler has written.
    CLOSE_LATER = <<~RUBY
      require "puma/cli"
      require "puma/server"
      Puma::Server.prepend(Module.new do
        def graceful_shutdown = super.tap { sleep(0.01) until Thread.main.backtrace.first.end_with?("join'") }
      end)
    RUBY
    private_constant :SHOW_THREADS, :CLOSE_LATER

    # @param ruby [Array<String>] a Ruby with its load path
    # @param arguments [Array<String>] for puma
    # @return [Array<String>]
    def self.command(ruby, *arguments, before: "")
      [*ruby, "-W1", "-e", "gem 'puma'; #{before}; #{CLOSE_LATER}; load Gem.bin_path('puma', 'puma')", "--", *arguments]
    end

    # @param ruby [Array<String>] a Ruby with its load path
    # @param folder [String] of the application
    # @param threads [Integer]
    # @param environment [Hash{String => String}]
    def initialize(ruby, folder, threads:, environment:)
      reader, writer = IO.pipe
      input, @input = IO.pipe
      command = self.class.command(ruby, "-C", "-", "-b", "tcp://127.0.0.1:0", "-t", "#{threads}:#{threads}",
                                   "config.ru", before: SHOW_THREADS)
      @pid = spawn({ "RAILS_ENV" => "production", **environment }, *command,
                   chdir: folder, in: input, out: writer, err: writer, pgroup: true)
      [input, writer].each(&:close)
      @said = +""
      listen(reader)
    end

    # @return [String] what it has printed
    attr_reader :said

    # @return [Hash]
    # @raise [RuntimeError] if the answer is no page
    def get(path)
      answer = Net::HTTP.get_response("127.0.0.1", path, @port)
      raise "#{answer.code}: #{answer.body}" unless answer.code == "200"

      JSON.parse(answer.body, symbolize_names: true)
    end

    # @raise [RuntimeError] if it does not end, with what its threads do
    def stop
      Process.kill(:TERM, @pid)
      ended = wait(STOP)
      @input.close
      wait(2) || (Process.kill(:KILL, @pid) && wait(STOP)) unless ended
      @reading&.join
      raise "Puma does not end:\n#{@said}" unless ended
    end

    private

    # @return [Boolean] whether it has ended within this number of seconds
    def wait(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      until (ended = Process.wait(@pid, Process::WNOHANG))
        break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep(0.02)
      end
      !ended.nil?
    end

    def listen(reader)
      begun = Thread::Queue.new
      @reading = Thread.new do
        reader.each_line do |line|
          @said << line
          begun << Integer($1) if line =~ %r{Listening on http://127\.0\.0\.1:(\d+)}
        end
      ensure
        begun.close
        reader.close
      end
      @port = begun.pop(timeout: START) || raise("Puma does not start:\n#{@said}")
    end
  end
end
