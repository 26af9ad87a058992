# frozen_string_literal: true

# Runs CRuby's own test/fiber with Heddle::Scheduler in place of its reference scheduler.
#
#   ruby test/upstream/run.rb --source DIR [--backend uring,epoll] [-n NAME] [--keep]
#
# DIR is a checkout of CRuby's source at the tag of the running Ruby. Nothing of it is kept here: its tests are copied
# to a temporary folder, with scheduler.rb beside them. A test that fails and is not in exceptions.yml is an error;
# so is one that is in there and passes.

require "fileutils"
require "open3"
require "optparse"
require "tmpdir"
require_relative "source"

module Upstream
  # Seconds for one file: its tests wait for a few at most.
  LIMIT = 120

  # One file of CRuby's test/fiber, run in a process of its own under one backend.
  class FileRun
    attr_reader :outcomes

    def initialize(source, folder, file, backend, name)
      @source = source
      @folder = folder
      @file = file
      @backend = backend
      @name = name
      @outcomes = {}
    end

    def run
      output, = Open3.capture2e(environment, "timeout", "-s", "KILL", LIMIT.to_s, *command, chdir: @folder)
      read(output.scrub)
      self
    end

    private

    def environment
      { "HEDDLE_UPSTREAM_BACKEND" => @backend, "RUBYOPT" => nil, "RUBYLIB" => nil }
    end

    def command
      @source.command(File.join(@folder, @file), name: @name)
    end

    # A line per test: "[1/3] TestFiberSleep#test_sleep = 0.04 s"; a failure follows below, with its number.
    def read(output)
      output.scan(%r{^\[ *\d+/\d+\] (\S+#\S+)(?: = [\d.]+ s)?}) { |(test)| @outcomes[test] = [:passed, nil] }
      pattern = /^ *\d+\) (Failure|Error|Skipped|Timeout):\n(\S+#[^\s:]+)(.*?)(?=^ *\d+\) |^Finished|\z)/m
      output.scan(pattern) do |kind, test, text|
        @outcomes[test] = [kind == "Skipped" ? :skipped : :failed, text.strip]
      end
      return if output.include?("Finished tests in")

      last = @outcomes.keys.last || @file
      @outcomes[last] = [:failed, "the process ended in or after this test:\n#{output.lines.last(25).join}"]
    end
  end

  # All files under all backends, compared with the known exceptions.
  class Run
    def initialize(arguments)
      @backends = %w[uring epoll]
      source = @name = @keep = nil
      OptionParser.new do |options|
        options.on("--source DIR") { |dir| source = dir }
        options.on("--backend LIST", Array) { |list| @backends = list }
        options.on("-n", "--name NAME") { |name| @name = name }
        options.on("--keep") { @keep = true }
      end.parse!(arguments)
      @files = arguments
      @source = Source.new(source)
      @exceptions = Exceptions.new("exceptions.yml")
    end

    def run
      folder = Dir.mktmpdir("heddle-upstream")
      copy(folder)
      @backends.map { |backend| run_backend(folder, backend) }.all? ? 0 : 1
    ensure
      @keep ? puts("kept: #{folder}") : FileUtils.rm_rf(folder.to_s)
    end

    private

    def copy(folder)
      FileUtils.cp(Dir.glob(@source.path("test/fiber/*.rb")), folder)
      head = Upstream.load_path.reverse.map { |path| "$LOAD_PATH.unshift(#{path.inspect})\n" }.join
      File.write(File.join(folder, "scheduler.rb"), head + File.read(File.join(HERE, "scheduler.rb")))
    end

    def run_backend(folder, backend)
      files = @files.empty? ? Dir.glob("test_*.rb", base: folder).sort : @files
      outcomes = files.map { |file| FileRun.new(@source, folder, file, backend, @name).run.outcomes }.reduce({}, :merge)
      report(backend, outcomes)
    end

    def report(backend, outcomes)
      listed = proc { |test, _| @exceptions.find(test, backend) }
      known, bad = outcomes.select { |_, (state, _)| state == :failed }.partition(&listed)
      stale = outcomes.select { |_, (state, _)| state == :passed }.select(&listed).keys
      bad.each { |test, (_, text)| puts "\nFAILED #{test}\n#{text}" }
      known.each { |test, _| puts "known: #{test}: #{@exceptions.find(test, backend)["reason"]}" }
      stale.each { |test| puts "passes, but is listed in exceptions.yml: #{test}" }
      counts = %i[passed skipped].map { |state| "#{outcomes.count { |_, (one, _)| one == state }} #{state}" }
      puts "Ruby #{RUBY_VERSION}, #{backend}: #{outcomes.size} tests, #{counts.join(", ")}, " \
           "#{known.size} known exceptions, #{bad.size} failed"
      bad.empty? && stale.empty? && !outcomes.empty?
    end
  end
end

exit(Upstream::Run.new(ARGV).run) if $PROGRAM_NAME == __FILE__
