# frozen_string_literal: true

require "json"
require "net/http"

module TestSupport
  # A Rack application of the tests in a Puma of its own, on a free port.
  class Puma
    START = 60 # seconds
    STOP = 60

    # @param command [Array<String>] a Ruby with its load path
    # @param folder [String] of the application
    # @param threads [Integer]
    # @param environment [Hash{String => String}]
    # @param configuration [String, nil] the path of a file of Puma's
    def initialize(command, folder, threads:, environment:, configuration: nil)
      arguments = ["-C", configuration || "-", "-b", "tcp://127.0.0.1:0", "-t", "#{threads}:#{threads}", "config.ru"]
      start(command, "puma", arguments, folder, environment)
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
      %i[ALRM KILL].each { |signal| Process.kill(signal, @pid) && wait(2) } unless ended
      @reading&.join
      raise "#{self.class} does not end:\n#{@said}" unless ended
    end

    # @return [Integer]
    attr_reader :port

    private

    def start(command, name, arguments, folder, environment)
      reader, writer = IO.pipe
      program = "gem '#{name}'; load Gem.bin_path('#{name}', '#{name}')"
      @pid = spawn({ "RAILS_ENV" => "production", **environment }, *command, "-W1", "-e", program, "--", *arguments,
                   chdir: folder, in: File::NULL, out: writer, err: writer, pgroup: true)
      writer.close
      @said = +""
      listen(reader)
    end

    # The line of its output that tells its port.
    def listening = %r{Listening on http://127\.0\.0\.1:(\d+)}

    # @return [Boolean] whether it has ended within so many seconds
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
          begun << Integer($1) if line =~ listening
        end
      ensure
        begun.close
        reader.close
      end
      @port = begun.pop(timeout: START) || raise("#{self.class} does not start:\n#{@said}")
    end
  end
end
