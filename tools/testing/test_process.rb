# frozen_string_literal: true

# Runs one test file and leaves its counts where tools/testing/test_job.rb finds them:
#   bin/ruby tools/testing/test_process.rb RESULT TEST_FILE MINITEST_OPTIONS

require "json"
require "minitest"
require "stringio"

# Without these counts at the end, the process did not get there.
class CountsReporter < Minitest::StatisticsReporter
  def initialize(path)
    super(StringIO.new, {})
    @path = path
  end

  # Tells which test a process hung or crashed in.
  def prerecord(klass, name)
    File.write("#{@path}.current", "#{klass}##{name}")
  end

  def report
    super
    failed = results.reject(&:skipped?).map { |result| ["#{result.klass}##{result.name}", result.to_s] }
    counts = { runs: count, assertions: assertions, failures: failures, errors: errors, skips: skips,
               failed_tests: failed, cpu_seconds: Process.times.sum }
    File.write(@path, JSON.generate(counts))
  end
end

COUNTS = CountsReporter.new(File.expand_path(ARGV.shift))
TEST_FILE = ARGV.shift

# Called by Minitest when it starts.
def Minitest.plugin_counts_init(_options)
  reporter << COUNTS
end
Minitest.extensions << "counts"

require File.expand_path(TEST_FILE)
