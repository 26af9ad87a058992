# frozen_string_literal: true

require "shellwords"
require_relative "../rubies/rubies"

module Tools
  # Prints the output of bin/test: a line for each process as it ends, and at the end the sums, and for each failure the
  # command that runs that test alone, and its report once more: of a long log often only the end can be had.
  class TestReport
    # What a command needs to find the failure again.
    SETTINGS = %w[HEDDLE_VARIANT HEDDLE_TEST_BACKENDS HEDDLE_TEST_ENTRY HEDDLE_BACKEND].freeze

    # How much is repeated of a failure at the end.
    LINES = 15
    CHARACTERS = 1500

    # Seconds after which it says how long the run will take, and then again.
    PAUSES = [60, 600].freeze

    # @param size [Integer] how many jobs there are
    # @param brief [Boolean] whether it says one line for each Ruby, unless something fails
    def initialize(size, seed, brief: false)
      @size = size
      @seed = seed
      @brief = brief
      @started = @said = now
      @done = 0
      @sums = Hash.new { |sums, title| sums[title] = Hash.new(0) }
      @again = []
      @unsteady = []
    end

    # @param left_out [Integer] how many files only the first Ruby runs
    def open(rubies, left_out: 0)
      return if @brief

      puts rubies.map(&:to_s), "seed #{@seed}, #{@size} processes"
      return unless left_out.positive?

      puts "#{left_out} files of products and clients run on Ruby #{rubies.first.version} alone (--all: on each)"
    end

    def add(job, result)
      @done += 1
      tell(job, result) unless @brief && result.ok?
      { files: 1, **result.counts, seconds: result.seconds }.each { |key, number| @sums[title(job)][key] += number }
      result.failed_tests.each { |test, text| @again << again(job, test) << indent(shorten(text), 6) }
    end

    def repeating(job, test)
      puts "once more, alone: #{[job.ruby&.version, test].compact.join("  ")}"
    end

    # @param seconds [Float] an estimate
    def remaining(seconds)
      return if now - @said < PAUSES[@said == @started ? 0 : 1]

      @said = now
      puts format("after %d min: about %d min more", (now - @started) / 60, (seconds / 60).ceil)
    end

    # @param jobs [Array<TestJob>] those for which there was no time
    def left_out(jobs)
      return if jobs.empty?

      puts "", "Left out, for there was no time (--minutes): #{jobs.size} processes",
           *jobs.map { |job| "  #{[job.ruby&.version, job.name].compact.join("  ")}" }
    end

    # @param tests [Array<Array(TestJob, String)>] the tests that passed when they were repeated
    def unsteady(tests) = @unsteady = tests

    # @return [Boolean] whether nothing failed, or what failed passed when it was repeated
    def close
      tell_sums
      runs, failures, errors, skips = %i[runs failures errors skips].map { |key| @sums.values.sum { |sums| sums[key] } }
      puts "", "To run a failed test alone:", *@again if @again.any?
      tell_unsteady
      failed = failures + errors - @unsteady.size
      puts "", "#{runs - failed - skips - @unsteady.size} passed, #{failed} failed, #{skips} skipped" \
               "#{", #{@unsteady.size} unsteady" if @unsteady.any?}"
      puts "no test matches" if runs.zero?
      failed.zero? && runs.positive?
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def title(job) = job.ruby&.to_s || "checks"

    def in_words(key, number) = key == :seconds ? format("%.1f s", number) : "#{number} #{key}"

    def tell_sums
      puts "" unless @brief
      @sums.each { |title, sums| puts "#{title}: #{sums.map { |key, number| in_words(key, number) }.join(", ")}" }
    end

    def tell_unsteady
      return if @unsteady.empty?

      puts "", "Unsteady: these failed beside the others, and passed when they were run once more, alone:"
      @unsteady.each { |job, test| puts again(job, test) }
    end

    def tell(job, result)
      counts = result.counts
      words = [job.ruby&.version, job.name].compact.join("  ")
      puts format("%*d/%d  %-4s  %-76s %4d runs %6.1f s%s%s", @size.to_s.size, @done, @size,
                  result.ok? ? "ok" : "FAIL", words, counts[:runs], result.seconds,
                  counts[:skips].zero? ? "" : "  #{counts[:skips]} skipped",
                  result.trouble ? "  #{result.trouble}" : "")
      puts indent(result.output, 6) unless result.ok? && @size > 1
      $stdout.flush
    end

    def indent(text, columns) = text.gsub(/^/, " " * columns)

    def shorten(text)
      short = text.lines.first(LINES).join[0, CHARACTERS]
      short == text ? text : "#{short.chomp}\n..."
    end

    # @return [String] a command for the shell
    def again(job, test)
      settings = SETTINGS.filter_map { |name| "#{name}=#{Shellwords.escape(ENV[name])}" if ENV[name] }
      return indent([*settings, job.name].join(" "), 2) unless job.ruby

      name = job.ruby == Rubies.of_series(job.ruby.series) ? job.ruby.series : job.ruby.exe
      words = ["bin/test", job.name, *(["-n", test] if test), "--seed", @seed, "--ruby", name]
      indent([*settings, Shellwords.join(words)].join(" "), 2)
    end
  end
end
