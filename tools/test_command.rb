# frozen_string_literal: true

require_relative "setup"
require_relative "test_forker"
require_relative "test_job"
require_relative "test_pool"
require_relative "test_program"
require_relative "test_repeats"
require_relative "test_report"

module Tools
  # bin/test
  class TestCommand
    HELP = <<~TEXT
      bin/test                              all tests on every Ruby at hand, the C tests and RuboCop
      bin/test test/foo_test.rb -n /bar/    these files alone; what is no file or folder goes to minitest
      bin/test --ruby 3.4 --ruby 4.0        on those Rubies alone (a series that bin/setup built, or a path)

      HEDDLE_RUBIES="PATH PATH"      the Rubies to test (default: the project's and those that bin/setup built)
      HEDDLE_VARIANT=assert          tests that build of the extension
      HEDDLE_TEST_JOBS=2             how many cores to keep busy (default: all)
      HEDDLE_TEST_FILE_TIMEOUT=1800  seconds after which a file's process is killed
    TEXT
    PACKAGES = File.join(__dir__, "test_packages.txt")
    # What looks at the sources, or at programs that do not differ from Ruby to Ruby, is run on the first Ruby alone.
    ONCE = %r{\Atest/(bench|demo|docs|sig|tools)/|\Atest/(style|signals)_test\.rb\z}

    # What a test file says that begins by itself, for it must not find Heddle loaded.
    UNFORKED = %r{^# bin/test: not forked}

    def initialize(arguments)
      @rubies = values_of(arguments, "--ruby")
      # An existing path is a file to run; everything else is minitest's.
      @paths, @options = arguments.partition { |argument| File.exist?(argument) }
      @everything = arguments.empty? || arguments.all?(/\A(--seed(=\d+)?|-s|-v|--verbose|\d+)\z/)
      @help = arguments.intersect?(%w[-h --help])
      @limit = Integer(ENV.fetch("HEDDLE_TEST_FILE_TIMEOUT", "1800"))
      @cores = Integer(ENV.fetch("HEDDLE_TEST_JOBS", Tools.processors.to_s))
      @folder = File.join(Tools.tmp, "test", $PROCESS_ID.to_s)
      @forkers = []
    end

    def run
      return puts(HELP) || 0 if @help

      files = test_files
      rubies = set_up
      seed = choose_seed
      jobs = rubies.flat_map { |info| file_jobs(info, info == rubies.first ? files : files.grep_v(ONCE)) }
      jobs += checks if @everything
      puts rubies.map(&:to_s), "seed #{seed}, #{jobs.size} processes"
      report = TestReport.new(jobs.size, seed)
      run_all(jobs, report)
      @forkers.each(&:close)
      return 1 unless report.close

      FileUtils.rm_rf(@folder)
      0
    end

    private

    def run_all(jobs, report)
      failed = []
      TestPool.new(jobs, @cores).run do |job, result|
        report.add(job, result)
        failed << [job, result] unless result.ok?
      end
      return if jobs.one?

      report.unsteady(TestRepeats.new(failed).run { |job, test| report.repeating(job, test) })
    end

    # Takes an option, which may come several times, and its values out of the arguments.
    def values_of(arguments, name)
      values = []
      while (place = arguments.index(name))
        values << arguments.slice!(place, 2).fetch(1) { raise Problem, "#{name} what? See bin/test --help" }
      end
      values
    end

    # @return [Array<RubyInfo>] all Rubies to test on, each with its gems and the extension
    def set_up
      console = Console.new
      rubies = @rubies.map { |name| Rubies.of_series(name) || Rubies.named(name) }
      rubies = Rubies.for_tests(Setup.new.run) if rubies.empty?
      install_packages(console)
      rubies.each do |info|
        Setup.new(request: info.exe, console: console).run
        GemFolder.new(info, console: console).install_for_tests.each { |line| console.say(line) }
        variant = ENV.fetch("HEDDLE_VARIANT", "")
        Extension.new(info, console: console, variant: variant).build unless variant.empty?
      end
    end

    # What is missing makes tests skip, and is told of here.
    def install_packages(console)
      packages = File.readlines(PACKAGES, chomp: true).grep_v(/\A(#|\s*\z)/)
      Apt.new(console).install(packages)
    rescue Problem => e
      e.report.each { |line| console.say(line) }
    end

    # One for all, so that a failure can be had again.
    # @return [String]
    def choose_seed
      given = @options.join(" ")[/(?:--seed|-s)[= ]?(\d+)/, 1]
      @options += ["--seed", rand(0xffff).to_s] unless given
      given || @options.last
    end

    def test_files
      paths = @paths.empty? ? [File.join(ROOT, "test")] : @paths.map { |path| File.expand_path(path) }
      files = paths.flat_map { |path| File.directory?(path) ? Dir.glob(File.join(path, "**/*_test.rb")) : [path] }
      absent = @options.grep(%r{\.rb\z|\Atest/})
      raise Problem, "there is no #{absent.join(", ")}" unless absent.empty?
      raise Problem, "there is no test file in #{@paths.empty? ? "test/" : @paths.join(", ")}" if files.empty?

      files.map { |path| path.delete_prefix("#{ROOT}/") }.uniq.sort
    end

    def file_jobs(info, files)
      filtered = @options.any?(/\A(-n|--name|-i|--include|-e|-x|--exclude)/)
      @forkers << TestForker.new(environment(info), File.join(@folder, "#{info.key}-forks.out"))
      program = TestProgram.new(environment(info), [File.join(ROOT, "bin/ruby"), "-I", "test", "tools/test_process.rb"])
      files.map do |file|
        starter = File.read(File.expand_path(file, ROOT), 400).match?(UNFORKED) ? program : @forkers.last
        TestJob.new(file, starter, [file, *@options], ruby: info, folder: @folder, limit: @limit, counted: true,
                                                      may_be_empty: filtered)
      end
    end

    def environment(info)
      options = ENV.fetch("HEDDLE_USER_RUBYOPT", "")
      { "RUBYOPT" => options.empty? ? nil : options, "HEDDLE_USER_RUBYOPT" => nil,
        "HEDDLE_RUBY" => info ? info.exe : ENV.fetch("HEDDLE_RUBY", nil) }
    end

    # The C tests, and the checker of the sources.
    def checks
      program = TestProgram.new(environment(nil))
      { "bin/rake rubocop" => %w[bin/rake rubocop], "test/c/run" => %w[bin/ruby test/c/run] }.map do |name, command|
        TestJob.new(name, program, command, folder: @folder, limit: @limit)
      end
    end
  end
end
