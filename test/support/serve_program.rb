# frozen_string_literal: true

require "net/http"

module TestSupport
  # A server program in a process group of its own, and what it says.
  class ServeProgram
    # @return [Integer] +tls_port+: of its first address with TLS
    attr_reader :pid, :port, :tls_port
    # @return [Array<String>] lines
    attr_reader :said

    # @param until_said [Regexp] it has begun when this is said so often
    def initialize(*command, env: {}, until_said: /listening on/, times: 1, **options)
      @said = []
      @reader, writer = IO.pipe
      env = { "HEDDLE_DUMP" => "USR1", **env }
      @pid = Process.spawn(env, *command, err: writer, out: writer, pgroup: true, **options)
      writer.close
      @listener = Thread.new { @reader.each_line { |line| @said << line } }
      wait_for(until_said, times)
      @port, @tls_port = %w[tcp ssl].map { |scheme| @said.join[%r{#{scheme}://[\d.]+:(\d+)}, 1]&.to_i }
    rescue RuntimeError
      close
      raise
    end

    # Until it has said this so often.
    def wait_for(text, times = 1)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      loop do
        goes_on = Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit && @listener.alive?
        return if @said.grep(text).size >= times # asked last: a program that has ended has said all of it
        raise "it did not say #{text.inspect} #{times} times: #{dump}" unless goes_on

        sleep(0.01)
      end
    end

    def get(path = "/")
      Net::HTTP.start("127.0.0.1", @port, max_retries: 0) { |http| http.get(path) }
    end

    def signal(name) = Process.kill(name, @pid)

    # @return [Process::Status]
    def wait
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      until (found = Process.wait2(@pid, Process::WNOHANG))
        sleep(0.01)
        raise "it does not end: #{dump}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      end
      @ended = true
      found.last
    end

    # Has this signal ended the program as it should? The last USR2 may just have put another program in its place.
    # While Ruby starts, the signal ends it as any program; with 1, if Ruby loads a file of RUBYOPT just then.
    #
    # @param status [Process::Status]
    def ended_by?(signal, status)
      status.success? || status.termsig == Signal.list[signal.to_s] || (status.exitstatus == 1 && changes_program?)
    end

    def close
      Process.kill(:KILL, -@pid)
    rescue Errno::ESRCH
      nil
    ensure
      Process.wait(@pid) unless @ended
      @listener.join
      @reader.close
    end

    private

    # All that it has said, and what its tasks and threads do.
    def dump
      signal(:USR1)
      @listener.join(2)
      @said.join
    end

    # Is the program that listens about to be replaced?
    def changes_program?
      (@said.rindex { |line| line.include?("takes the place of this one") } || -1) >
        @said.rindex { |line| line.include?("listening on") }
    end
  end
end
