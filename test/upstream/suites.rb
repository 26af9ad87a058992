# frozen_string_literal: true

# Runs CRuby's own suites for IO, sockets, HTTP, TLS, queues, timeouts and processes twice: as they are, and with every
# test in a fiber of Heddle. What fails or hangs only with Heddle is an error, unless suites_exceptions.yml tells why
# that is right; so is a test that is in there and passes.
#
#   ruby test/upstream/suites.rb --source DIR [--backend uring,epoll,outside] [-n NAME] [--limit SECONDS] [--seed N]
#     [--threads] [--beside] [--require FEATURE] [FILE ...]
#
# --backend outside: no scheduler runs, but Heddle's methods are in place of Ruby's. With HEDDLE_WITHOUT in the
# environment they are not, or not all.
# --require: the runs with Heddle load this, too.
# --threads: the threads that the tests start run in fibers of Heddle, too, each with a scheduler of its own.
# --beside: another task computes beside each test. With HEDDLE_TIME_SLICE=0.001 in the environment, slices end in the
# tests; without such a task a slice ends nowhere, because nobody else is ready.
# DIR is a checkout of CRuby's source at the tag of the running Ruby. Nothing of it is kept here. Its tests use the
# extensions of the running Ruby; one that needs an extension of CRuby's test tree (-test-) does not run.

require "json"
require "fileutils"
require "optparse"
require "tmpdir"
require_relative "source"

module Upstream
  # The files, each with the names of the tests that are run of it (nil: all).
  SUITES = {
    "test/ruby/test_io_timeout.rb" => nil,
    "test/ruby/test_io.rb" => nil,
    "test/io/wait/test_io_wait.rb" => nil,
    "test/io/wait/test_io_wait_uncommon.rb" => nil,
    "test/io/nonblock/test_flush.rb" => nil,
    **%w[addrinfo ancdata basicsocket nonblock socket sockopt tcp udp unix].to_h do |name|
      ["test/socket/test_#{name}.rb", nil]
    end,
    **%w[buffered_io http http_request httpheader httpresponse httpresponses https https_proxy].to_h do |name|
      ["test/net/http/test_#{name}.rb", nil]
    end,
    "test/openssl/test_pair.rb" => nil,
    "test/openssl/test_ssl.rb" => nil,
    "test/openssl/test_ssl_session.rb" => nil,
    "test/ruby/test_thread_queue.rb" => nil,
    "test/ruby/test_thread_cv.rb" => nil,
    "test/monitor/test_monitor.rb" => nil,
    "test/test_timeout.rb" => nil,
    "test/ruby/test_process.rb" => "/wait|detach/"
  }.freeze

  # One file of CRuby's tests under one backend (nil: no scheduler), in a process of its own. If a test ends that or
  # hangs, another process goes on behind it.
  class SuiteRun
    attr_reader :outcomes, :log

    def initialize(file, backend, source:, name:, limit:, seed:, threads:, feature:, beside:)
      @file = file
      @backend = backend
      @source = source
      @name = name
      @limit = limit
      @seed = seed
      @threads = threads
      @feature = feature
      @beside = beside
      @outcomes = {}
      @log = +""
    end

    def run
      Dir.mktmpdir("heddle-suites") do |folder|
        @folder = folder
        @results = File.join(folder, "results")
        FileUtils.touch(@results)
        nil until part
      end
      self
    end

    private

    # True if that was the last one.
    def part
      before = File.size(@results)
      ending = watch(start)
      output = File.read(File.join(@folder, "output")).scrub
      @log << output
      lines = File.readlines(@results).map { |line| JSON.parse(line, symbolize_names: true) }
      lines.each { |line| @outcomes[line[:test]] = [line[:state].to_sym, line[:text]] if line[:state] }
      unfinished = lines.map { |line| line[:test] } - @outcomes.keys
      unfinished.each { |test| @outcomes[test] = [:failed, "#{ending}\n#{output.lines.last(60).join}"] }
      unfinished.empty? || File.size(@results) == before
    end

    def start
      command = @source.command("--seed=#{@seed}", File.join(HERE, "prelude.rb"), @source.path(@file),
                                name: @name, load_path: Upstream.load_path)
      Process.spawn(environment, "timeout", "-s", "KILL", (@limit * 20).to_s, *command,
                    chdir: work_folder, pgroup: true, in: File::NULL, %i[out err] => File.join(@folder, "output"))
    end

    def work_folder = File.join(@folder, "work").tap { |folder| FileUtils.mkdir_p(folder) }

    def environment
      { "HEDDLE_SUITES_BACKEND" => @backend, "HEDDLE_SUITES_RESULTS" => @results, "RUBYOPT" => nil, "RUBYLIB" => nil,
        "HEDDLE_DUMP" => @backend && "USR1", "TMPDIR" => work_folder, "HEDDLE_SUITES_REQUIRE" => @backend && @feature,
        "HEDDLE_SUITES_THREADS" => (@source.path if @threads), "HEDDLE_SUITES_BESIDE" => ("1" if @beside) }
    end

    # Ends the process that no test has begun or ended in for the time of the limit. Says how it ended.
    def watch(pid)
      size = since = nil
      until Process.wait(pid, Process::WNOHANG)
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        if File.size(@results) != size
          size = File.size(@results)
          since = now
        end
        return stop(pid) if now - since > @limit

        sleep 0.05
      end
      "the process ended in this test: #{$?.inspect}"
    end

    def stop(pid)
      dump(pid) if @backend
      Process.kill(:KILL, -pid)
      Process.wait(pid)
      "hung for #{@limit} s"
    end

    # Of `timeout`, which must not get that signal, the only child.
    def dump(pid)
      File.read("/proc/#{pid}/task/#{pid}/children").split.each { |child| Process.kill(:USR1, child.to_i) }
      sleep 1
    rescue SystemCallError
      nil
    end
  end

  # All files with and without Heddle, compared.
  class Suites
    def initialize(arguments)
      @backends = %w[uring epoll]
      @settings = { name: nil, limit: 40, seed: Random.rand(65_536), threads: false, feature: nil,
                    beside: false }
      parse(arguments)
      @kinds = %i[threads beside].select { |option| @settings[option] }.map(&:to_s)
      @exceptions = Exceptions.new("suites_exceptions.yml")
      @good = true
    end

    def run
      puts "--seed #{@settings[:seed]}"
      counts = @backends.to_h { |backend| [backend, Hash.new(0)] }
      (@files.empty? ? SUITES.keys : @files).each do |file|
        plain = run_file(file, nil)
        next unless loaded?(file, plain)

        @backends.each { |backend| compare(file, backend, plain, run_file(file, backend), counts[backend]) }
      end
      title = ["Ruby #{RUBY_VERSION}", *@kinds.map { |kind| "--#{kind}" }].join(" ")
      counts.each { |backend, count| puts "#{title}, #{backend}: #{sum(count)}" }
      @good ? 0 : 1
    end

    private

    def parse(arguments)
      source = nil
      OptionParser.new do |options|
        options.on("--source DIR") { |dir| source = dir }
        options.on("--backend LIST", Array) { |list| @backends = list }
        options.on("-n", "--name NAME") { |name| @settings[:name] = name }
        options.on("--limit SECONDS", Integer) { |seconds| @settings[:limit] = seconds }
        options.on("--seed N", Integer) { |seed| @settings[:seed] = seed }
        options.on("--threads") { @settings[:threads] = true }
        options.on("--beside") { @settings[:beside] = true }
        options.on("--require FEATURE") { |feature| @settings[:feature] = feature }
      end.parse!(arguments)
      @settings[:source] = @source = Source.new(source)
      @files = arguments
    end

    def run_file(file, backend)
      SuiteRun.new(file, backend, **@settings, name: @settings[:name] || SUITES[file]).run
    end

    def loaded?(file, plain)
      return true unless plain.outcomes.empty?

      reason = File.exist?(@source.path(file)) ? plain.log.lines.grep(/Error|tests,/).first : "not in this CRuby"
      puts "#{file}: not run: #{reason.to_s.strip}"
      false
    end

    def compare(file, backend, plain, heddle, count)
      own = Hash.new(0)
      (plain.outcomes.keys | heddle.outcomes.keys).each do |test|
        before, = plain.outcomes[test]
        after, text = heddle.outcomes.fetch(test, [:failed, "was not run"])
        own[verdict(test, backend, before, after, text)] += 1
      end
      leaks(file, plain.log, heddle.log)
      own.each { |key, number| count[key] += number }
      puts "#{file}, #{backend}: #{sum(own)}"
      $stdout.flush
    end

    def verdict(test, backend, before, after, text)
      known = @exceptions.find(test, [backend, *@kinds]) unless backend == "outside"
      if before == after || after == :passed
        return after == :failed ? :failed_without_heddle_too : after unless known && after == :passed
        return after if known["sometimes"]

        return bad(:stale, "passes, but is listed in suites_exceptions.yml: #{test}")
      end
      return bad(:failed, "\n#{after.upcase} (#{before || "not run"} without Heddle) #{test}\n#{text}") unless known

      puts "known: #{test}: #{known["reason"]}"
      :known_exceptions
    end

    def bad(kind, text)
      @good = false
      puts text
      kind
    end

    # Descriptors and the like of which CRuby's leak checker says that a test left them behind. Threads are a matter of
    # time: Heddle's pool ends them when they have had no work for a while. Without Heddle, too, a thread that is killed
    # in accept may leave a socket behind, which no IO closes (the HTTP servers of the tests end so).
    def leaks(file, plain, heddle)
      plain, heddle = [plain, heddle].map { |log| log.scan(/Leaked (?!thread)(\w+.*?: \S+#\S+)(.*)/).to_h }
      (heddle.keys - plain.keys).each { |test| puts "left behind in #{file}: #{test}#{heddle[test]}" }
    end

    def sum(count)
      "#{count.values.sum} tests, " + count.map { |key, number| "#{number} #{key.to_s.tr("_", " ")}" }.join(", ")
    end
  end
end

exit(Upstream::Suites.new(ARGV).run) if $PROGRAM_NAME == __FILE__
