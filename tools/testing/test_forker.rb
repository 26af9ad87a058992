# frozen_string_literal: true

require "json"
require_relative "../command"

module Tools
  # Starts the processes of test files, all on one Ruby, as children of a process that has loaded what they need
  # (test_forks.rb).
  class TestForker
    # How a process ended.
    Status = Struct.new(:ok, :text) do
      def success? = ok
      def to_s = text
    end

    # To be called in the main thread: the kernel ends a process that is tied to us as soon as the thread ends that has
    # started it.
    # @param log [String] a path, for what the forking process says
    def initialize(env, log)
      @env = env
      @log = log
      @lock = Mutex.new
      @news = ConditionVariable.new
      @starts = Mutex.new # one at a time, so that each gets the answer to its own request
      @started = Thread::Queue.new
      @ended = {}
      open
    end

    # @param arguments [Array<String>] of test_process.rb
    # @param output [String] a path, for what the process says
    # @return [Integer, nil] its id; nil when it could not be started
    def start(arguments, output)
      @starts.synchronize do
        @requests.puts(JSON.generate([output, *arguments]))
        @started.pop
      end
    rescue Errno::EPIPE
      nil
    end

    # @return [Status, nil] nil when it has not ended after this number of seconds
    def wait(pid, limit)
      deadline = now + limit
      @lock.synchronize do
        @news.wait(@lock, deadline - now) until @ended.key?(pid) || @over || now >= deadline
        @ended.delete(pid) || (Status.new(false, "the process that forks has ended: #{File.read(@log)}") if @over)
      end
    end

    def close
      @requests.close
      @reader.join
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def open
      stdin, @requests = IO.pipe
      answers, stdout = IO.pipe
      @requests.sync = true
      command = [File.join(ROOT, "bin/ruby"), "-I", "test", File.join(__dir__, "test_forks.rb")]
      FileUtils.mkdir_p(File.dirname(@log))
      pid = Process.spawn(@env, *Command.tied(command, false), in: stdin, out: stdout, err: @log, chdir: ROOT)
      [stdin, stdout].each(&:close)
      @reader = Thread.new { read(answers) && Process.wait(pid) }
    end

    def read(answers)
      answers.each_line { |line| note(*JSON.parse(line)) }
    ensure
      answers.close
      @started.close
      @lock.synchronize { (@over = true) && @news.broadcast }
    end

    def note(pid, *status)
      return @started << pid if status.empty?

      @lock.synchronize { (@ended[pid] = Status.new(*status)) && @news.broadcast }
    end
  end
end
