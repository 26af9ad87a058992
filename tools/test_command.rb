# frozen_string_literal: true

require_relative "setup"
require_relative "test_job"

module Tools
  # bin/test
  class TestCommand
    HELP = <<~TEXT
      bin/test                              all tests on every Ruby at hand, the C tests and RuboCop
      bin/test test/foo_test.rb -n /bar/    these files alone; what is no file or folder goes to minitest

      HEDDLE_RUBIES="PATH PATH"     the Rubies to test (default: the project's and those that bin/setup built)
      HEDDLE_VARIANT=assert         tests that build of the extension
      HEDDLE_TEST_JOBS=2            how many processes at once (default: one per core)
      HEDDLE_TEST_FILE_TIMEOUT=300  seconds after which a file's process is killed
    TEXT
    PACKAGES = File.join(__dir__, "test_packages.txt")

    def initialize(arguments)
      # An existing path is a file to run; everything else is minitest's.
      @paths, @options = arguments.partition { |argument| File.exist?(argument) }
      @everything = arguments.empty? || arguments.all?(/\A(--seed(=\d+)?|-s|-v|--verbose|\d+)\z/)
      @help = arguments.intersect?(%w[-h --help])
      @limit = Integer(ENV.fetch("HEDDLE_TEST_FILE_TIMEOUT", "300"))
      @workers = Integer(ENV.fetch("HEDDLE_TEST_JOBS", Tools.processors.to_s))
    end

    def run
      return puts(HELP) || 0 if @help

      files = test_files
      rubies = set_up
      choose_seed
      totals = rubies.map { |info| run_ruby(info, files) }
      totals << run_checks if @everything
      close(totals)
    end

    private

    # @return [Array<RubyInfo>] all Rubies to test on, each with its gems and the extension
    def set_up
      setup = Setup.new
      current = setup.run
      install_packages(setup.console)
      Rubies.for_tests(current).each do |info|
        Setup.new(request: info.exe, console: setup.console).run
        GemFolder.new(info, console: setup.console).install_for_tests.each { |line| setup.console.say(line) }
        variant = ENV.fetch("HEDDLE_VARIANT", "")
        Extension.new(info, console: setup.console, variant: variant).build unless variant.empty?
      end
    end

    # What is missing makes tests skip, and is told of here.
    def install_packages(console)
      packages = File.readlines(PACKAGES, chomp: true).grep_v(/\A(#|\s*\z)/)
      Apt.new(console).install(packages)
    rescue Problem => e
      e.report.each { |line| console.say(line) }
    end

    def choose_seed
      return if @options.any?(/\A(--seed|-s)/)

      @options += ["--seed", rand(0xffff).to_s]
      puts "seed: --seed #{@options.last}"
    end

    def test_files
      paths = @paths.empty? ? [File.join(ROOT, "test")] : @paths.map { |path| File.expand_path(path) }
      files = paths.flat_map { |path| File.directory?(path) ? Dir.glob(File.join(path, "**/*_test.rb")) : [path] }
      absent = @options.grep(%r{\.rb\z|\Atest/})
      raise Problem, "there is no #{absent.join(", ")}" unless absent.empty?
      raise Problem, "there is no test file in #{@paths.empty? ? "test/" : @paths.join(", ")}" if files.empty?

      files.map { |path| path.delete_prefix("#{ROOT}/") }.uniq.sort
    end

    def run_ruby(info, files)
      puts "\nRuby #{info.version} (#{info.exe}), #{files.size} files"
      started = now
      jobs = files.map { |file| file_job(info, file) }
      counts = run_jobs(jobs)
      line = %i[runs assertions failures errors skips].map { |key| "#{counts[key]} #{key}" }.join(", ")
      puts "Ruby #{info.version}, #{(now - started).round} s:", line
      empty = counts[:runs].zero?
      puts "no test matches" if empty
      counts.merge(errors: counts[:errors] + (empty ? 1 : 0), runs: counts[:runs] + (empty ? 1 : 0))
    end

    def file_job(info, file)
      folder = fresh_folder(info.key)
      counts = File.join(folder, "#{file.gsub("/", "-")}.json")
      command = [File.join(ROOT, "bin/ruby"), "-I", "test", "tools/test_process.rb", counts, file, *@options]
      filtered = @options.any?(/\A(-n|--name|-i|--include|-e|-x|--exclude)/)
      TestJob.new(file, command, folder: folder, env: environment(info), counts: counts,
                                 may_be_empty: filtered, limit: @limit)
    end

    def environment(info = nil)
      options = ENV.fetch("HEDDLE_USER_RUBYOPT", "")
      { "RUBYOPT" => options.empty? ? nil : options, "HEDDLE_USER_RUBYOPT" => nil,
        "HEDDLE_RUBY" => info ? info.exe : ENV.fetch("HEDDLE_RUBY", nil) }
    end

    # Not once per Ruby: the C tests, and the checkers of the sources.
    def run_checks
      folder = fresh_folder("checks")
      ruby = File.join(ROOT, "bin/ruby")
      rubocop = [ruby, "-e", 'load Gem.bin_path("rubocop", "rubocop")', "--", "--format", "simple", "--no-color",
                 "--cache-root", File.join(Tools.tmp, "rubocop")]
      jobs = [TestJob.new("RuboCop", rubocop, folder: folder, env: environment, limit: @limit)]
      script = File.join(ROOT, "test/c/run")
      if File.executable?(script)
        command = File.open(script, &:gets).include?("ruby") ? [ruby, script] : [script]
        jobs << TestJob.new("test/c/run", command, folder: folder, env: environment, limit: 2 * @limit)
      end
      puts "\nC tests and checkers"
      run_jobs(jobs)
    end

    def fresh_folder(name)
      @folders ||= Hash.new do |folders, key|
        path = File.join(Tools.tmp, "test", $PROCESS_ID.to_s, key)
        FileUtils.mkdir_p(path)
        folders[key] = path
      end
      @folders[name]
    end

    # Runs the jobs on a few workers. @return [Hash] the sum of their counts
    def run_jobs(jobs)
      queue = Queue.new
      jobs.each { |job| queue << job }
      queue.close
      results = Queue.new
      workers = Array.new([@workers, jobs.size].min) { Thread.new { work(queue, results) } }
      sum = jobs.map { results.pop.tap { |job, result| tell(job, result, jobs.size == 1) }.last.counts }
        .reduce { |a, b| a.merge(b) { |_, x, y| x + y } }
      workers.each(&:join)
      sum
    ensure
      workers&.each(&:kill)
      jobs.each(&:kill)
    end

    def work(queue, results)
      while (job = queue.pop)
        results << [job, job.run]
      end
    end

    def tell(job, result, alone)
      counts = result.counts
      puts format("%-4s  %-44s %5d runs  %6.1f s%s%s", result.ok? ? "ok" : "FAIL", job.name, counts[:runs],
                  result.seconds, counts[:skips].zero? ? "" : "  #{counts[:skips]} skipped",
                  result.trouble ? "  #{result.trouble}" : "")
      puts result.output.gsub(/^/, "      ") unless result.ok? && !alone
      $stdout.flush
    end

    def close(totals)
      sum = totals.reduce { |a, b| a.merge(b) { |_, x, y| x + y } }
      failed = sum[:failures] + sum[:errors]
      puts "", "#{sum[:runs] - failed - sum[:skips]} passed, #{failed} failed, #{sum[:skips]} skipped"
      FileUtils.rm_rf(File.join(Tools.tmp, "test", $PROCESS_ID.to_s)) if failed.zero?
      failed.zero? ? 0 : 1
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
