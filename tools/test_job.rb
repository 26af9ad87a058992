# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "command"

module Tools
  # One process of the test run: a test file, the C tests or a checker.
  class TestJob
    # How it ended. +trouble+ is nil, or what to say beside the counts.
    Result = Struct.new(:counts, :trouble, :output, :seconds, keyword_init: true) do
      def passed
        counts.fetch(:runs) - counts.fetch(:failures) - counts.fetch(:errors) - counts.fetch(:skips)
      end

      def failed
        counts.fetch(:failures) + counts.fetch(:errors)
      end

      def ok?
        failed.zero?
      end
    end

    NOTHING = { runs: 0, assertions: 0, failures: 0, errors: 0, skips: 0 }.freeze

    attr_reader :name

    # @param counts path of the file with a test process's counts; nil for a program that only passes or fails
    # @param may_be_empty [Boolean] whether running no test is all right
    def initialize(name, command, folder:, env: {}, counts: nil, may_be_empty: false, limit: 300)
      @name = name
      @command = command
      @env = env
      @counts = counts
      @may_be_empty = may_be_empty
      @limit = limit
      @output = File.join(folder, "#{name.gsub(/[^\w.-]+/, "-")}.out")
    end

    # @return [Result]
    def run
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      status = run_process
      counts, trouble = judge(status)
      Result.new(counts: counts, trouble: trouble, output: File.read(@output).scrub,
                 seconds: Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
    end

    # Ends the process and all that it started.
    def kill
      Process.kill("KILL", -@pid) if @pid
    rescue Errno::ESRCH, Errno::EPERM
      nil
    ensure
      @pid = nil # the number may soon be another process's
    end

    private

    # To a file, not a pipe: a process left behind would keep a pipe open.
    # @return [Process::Status, nil] nil when the time was up
    def run_process
      @pid = Process.spawn(@env, *Command.tied(@command, false),
                           in: File::NULL, out: @output, err: %i[child out], pgroup: true, chdir: ROOT)
      waiter = Process.detach(@pid)
      waiter.join(@limit)
      waiter.value unless waiter.alive?
    ensure
      kill
    end

    def judge(status)
      return broken("hung: killed after #{@limit} s#{last_test}") unless status
      return judge_program(status) unless @counts

      counts = JSON.parse(File.read(@counts)).transform_keys(&:to_sym)
      return @may_be_empty ? [counts, nil] : broken("ran no test") if counts[:runs].zero?

      said_ok = counts[:failures].zero? && counts[:errors].zero?
      return broken("ended badly after its tests (#{status})", counts) if said_ok && !status.success?

      [counts, nil]
    rescue Errno::ENOENT, JSON::ParserError
      broken("crashed or ended early (#{status})#{last_test}")
    end

    # The program's own closing line counts, if it has one.
    def judge_program(status)
      numbers = File.read(@output).scrub.scan(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/).last
      numbers ||= status.success? ? [1, 0, 0] : [0, 1, 0]
      passed, failed, skipped = numbers.map(&:to_i)
      counts = NOTHING.merge(runs: passed + failed + skipped, failures: failed, skips: skipped)
      return broken("failed (#{status})", counts) if !status.success? && failed.zero?

      [counts, nil]
    end

    def broken(trouble, counts = NOTHING)
      [counts.merge(runs: counts[:runs] + 1, errors: counts[:errors] + 1), trouble]
    end

    def last_test
      ", in #{File.read("#{@counts}.current")}"
    rescue SystemCallError, TypeError
      ""
    end
  end
end
