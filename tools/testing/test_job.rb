# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../command"

module Tools
  # One process of the test run: a test file on one Ruby, the C tests or a checker.
  class TestJob
    # How it ended. +failed_tests+ are pairs: a name for minitest's -n (or nil), and what was said of it; +trouble+ is
    # nil, or what to say beside the counts; +cores+: how many it has kept busy, nil when that is not known.
    Result = Struct.new(:counts, :failed_tests, :trouble, :output, :seconds, :cores, keyword_init: true) do
      def failed
        counts.fetch(:failures) + counts.fetch(:errors)
      end

      def ok?
        failed.zero?
      end
    end

    NOTHING = { runs: 0, assertions: 0, failures: 0, errors: 0, skips: 0 }.freeze

    # The place in the log where a crash, a hang or a program of the C tests reports itself.
    TROUBLE = /^(?:[^\n]*(?:\[BUG\]| took longer than )|failed ).*/m
    TROUBLE_LINES = 15

    # A test file that takes long says so, for the machine of Machine::REFERENCE:
    # "# bin/test: takes 30 s, 0.5 of a core".
    DECLARATION = %r{^# bin/test: takes (\d+) s, ([\d.]+)(?: of a)? core$}
    # Of the others: most of them wait most of the time.
    SECONDS = 3
    CORES = 0.4

    attr_reader :name, :ruby, :seconds, :cores

    # @param starter [#start, #wait] starts a process, and waits for it
    # @param arguments [Array<String>] the program that it starts; for a test file, behind the path for its counts
    # @param ruby [RubyInfo, nil] nil when it does not matter
    # @param counted [Boolean] whether there will be counts; else it is a program that only passes or fails
    # @param may_be_empty [Boolean] whether running no test is all right
    def initialize(name, starter, arguments, folder:, limit:, ruby: nil, counted: false, may_be_empty: false)
      @name = name
      @ruby = ruby
      path = File.join(folder, "#{ruby&.key}-#{name.gsub(/[^\w.-]+/, "-")}")
      @output = "#{path}.out"
      @counts = "#{path}.json" if counted
      @starter = starter
      @arguments = [*@counts, *arguments]
      @may_be_empty = may_be_empty
      @limit = limit
      seconds, cores = declared
      @seconds = Float(seconds)
      @cores = Float(cores)
    end

    # @return [Result]
    def run
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      FileUtils.mkdir_p(File.dirname(@output))
      counts, trouble = judge(run_process)
      output = File.read(@output).scrub
      told, cpu_seconds = counts.values_at(:failed_tests, :cpu_seconds)
      seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
      result = Result.new(counts: counts.slice(*NOTHING.keys), trouble: trouble, output: output,
                          failed_tests: told.to_a, seconds: seconds, cores: cpu_seconds&./(seconds))
      return result if result.ok? || told&.any?

      result.tap { result.failed_tests = [[told ? nil : running_test, trouble_in(output)]] }
    end

    # @param test [String] a name for minitest's -n
    # @return [TestJob] the same job with that test alone
    def alone(test) = dup.tap { |job| job.arguments += ["-n", test] }

    # Ends the process and all that it started.
    def kill
      Process.kill("KILL", -@pid) if @pid
    rescue Errno::ESRCH, Errno::EPERM
      nil
    ensure
      @pid = nil # the number may soon be another process's
    end

    protected

    attr_accessor :arguments

    private

    def declared
      text = File.read(File.expand_path(@name, ROOT), 400) if @name.end_with?("_test.rb")
      return DECLARATION.match(text)&.captures || [SECONDS, CORES] if text

      [60, 1]
    end

    # To a file, not a pipe: a process left behind would keep a pipe open.
    # @return [#success?, nil] nil when the time was up
    def run_process
      File.write(@output, "")
      @pid = @starter.start(@arguments, @output)
      @starter.wait(@pid, @limit)
    ensure
      kill
    end

    def judge(status)
      return broken("hung: killed after #{@limit} s#{last_test}") unless status
      return judge_program(status) unless @counts

      counts = JSON.parse(File.read(@counts)).transform_keys(&:to_sym)
      return @may_be_empty ? [counts, nil] : broken("ran no test", counts) if counts[:runs].zero?

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

    # The part of the output that most likely says what went wrong.
    def trouble_in(output)
      output[TROUBLE] || output.lines.last(TROUBLE_LINES).join
    end

    def last_test
      ", in #{running_test}" if running_test
    end

    # The test that was under way when its process ended.
    def running_test
      File.read("#{@counts}.current") if @counts
    rescue SystemCallError
      nil
    end
  end
end
