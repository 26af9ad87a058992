# frozen_string_literal: true

require "json"
require "net/http"

module TestSupport
  # The Rails application of the tests in a Puma of its own, on a free port.
  class Puma
    START = 60 # seconds
    STOP = 60

    # @param command [Array<String>] a Ruby with its load path
    # @param folder [String] of the application
    # @param threads [Integer]
    # @param environment [Hash{String => String}]
    def initialize(command, folder, threads:, environment:)
      reader, writer = IO.pipe
      start = "gem 'puma'; load Gem.bin_path('puma', 'puma')"
      arguments = ["-C", "-", "-b", "tcp://127.0.0.1:0", "-t", "#{threads}:#{threads}", "config.ru"]
      @pid = spawn({ "RAILS_ENV" => "production", **environment }, *command, "-W1", "-e", start, "--", *arguments,
                   chdir: folder, in: File::NULL, out: writer, err: writer, pgroup: true)
      writer.close
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
      %i[ALRM KILL].any? { |signal| Process.kill(signal, @pid) && wait(2) } unless ended
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
