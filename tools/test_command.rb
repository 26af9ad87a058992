# frozen_string_literal: true

require_relative "testing/idle_cores"
require_relative "setup/setup"
require_relative "testing/test_costs"
require_relative "testing/test_forker"
require_relative "testing/test_job"
require_relative "testing/test_pool"
require_relative "testing/test_program"
require_relative "testing/test_repeats"
require_relative "testing/test_report"
require_relative "testing/test_selection"

module Tools
  # bin/test
  class TestCommand
    HELP = <<~TEXT
      bin/test                              the core's tests on every Ruby at hand, those of the products and clients on
                                            the first one, the C tests and RuboCop
      bin/test --all                        all tests on every Ruby
      bin/test --minutes 60                 --all if that takes half of the time at most; no test begins that would end
                                            later, and what is left out is named
      bin/test test/foo_test.rb -n /bar/    these files alone, on every Ruby; what is no file or folder goes to minitest
      bin/test --ruby 3.4 --ruby 4.0        on those Rubies alone (a series that bin/setup built, or a path)

      HEDDLE_RUBIES="PATH PATH"      the Rubies to test (default: the project's and those that bin/setup built)
      HEDDLE_VARIANT=assert          tests that build of the extension
      HEDDLE_TEST_JOBS=2             how many cores to keep busy (default: all)
      HEDDLE_TEST_FILE_TIMEOUT=1800  seconds after which a file's process is killed
    TEXT
    PACKAGES = File.join(__dir__, "setup/test_packages.txt")

    # What a test file says that begins by itself, for it must not find Heddle loaded.
    UNFORKED = %r{^# bin/test: not forked}

    def initialize(arguments)
      @started = now
      @rubies = values_of(arguments, "--ruby")
      @minutes = values_of(arguments, "--minutes").last
      all = arguments.delete("--all")
      # An existing path is a file to run; everything else is minitest's.
      paths, @options = arguments.partition { |argument| File.exist?(argument) }
      @whole = arguments.empty? || arguments.all?(/\A(--seed(=\d+)?|-s|-v|--verbose|\d+)\z/)
      @help = arguments.intersect?(%w[-h --help])
      @selection = select(paths, all) unless @help
      @limit = Integer(ENV.fetch("HEDDLE_TEST_FILE_TIMEOUT", "1800"))
      @cores = Integer(ENV.fetch("HEDDLE_TEST_JOBS", Tools.processors.to_s))
      @folder = File.join(Tools.tmp, "test", $PROCESS_ID.to_s)
      @forkers = {}
    end

    def run
      return puts(HELP) || 0 if @help

      rubies = find_rubies
      costs = TestCosts.new
      choose_what_fits(rubies, costs) if @minutes
      equip(rubies)
      seed = choose_seed
      rubies.each { |info| @forkers[info] = TestForker.new(environment(info), File.join(@folder, "#{info.key}.out")) }
      jobs = jobs_on(rubies)
      report = TestReport.new(jobs.size, seed, brief: !@whole && !@options.intersect?(%w[-v --verbose]))
      report.open(rubies, left_out: rubies.size > 1 ? @selection.left_out : 0)
      run_all(jobs, costs, report)
      @forkers.each_value(&:close)
      return 1 unless report.close

      FileUtils.rm_rf(@folder)
      0
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def run_all(jobs, costs, report)
      failed = []
      pool = TestPool.new(jobs, @cores, costs: costs, idle: IdleCores.new(@cores),
                                        deadline: @minutes && (@started + (Float(@minutes) * 60)))
      left_out = pool.run do |job, result|
        report.add(job, result)
        report.remaining(pool.remaining)
        failed << [job, result] unless result.ok?
      end
      report.left_out(left_out)
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

    def select(paths, all)
      absent = @options.grep(%r{\.rb\z|\Atest/})
      raise Problem, "there is no #{absent.join(", ")}" unless absent.empty?
      raise Problem, "--minutes #{@minutes}: a number" if @minutes && !@minutes.match?(/\A\d+(\.\d+)?\z/)

      TestSelection.new(paths, everything: all)
    end

    # @return [Array<RubyInfo>]
    def find_rubies
      named = @rubies.map { |name| Rubies.built_or_on_path(name) || Rubies.named(name) }
      named.empty? ? Rubies.for_tests(Setup.new.run) : named.uniq(&:exe)
    end

    # All tests on each Ruby, where that leaves much of the time.
    def choose_what_fits(rubies, costs)
      everything = @selection.with_everything
      seconds = costs.total(jobs_on(rubies, everything), @cores)
      puts format("This machine: %s.\nAll tests on each Ruby would take about %d minutes, of %g.", Machine.description,
                  (seconds / 60).ceil, @minutes)
      @selection = everything if seconds <= Float(@minutes) * 60 / 2
    end

    # Each Ruby gets the extension, and the gems that its tests need.
    def equip(rubies)
      console = Console.new
      install_packages(console) if @selection.products?(rubies.first, rubies)
      variant = ENV.fetch("HEDDLE_VARIANT", "")
      rubies.each do |info|
        Setup.new(request: info.exe, console: console).run
        if @selection.products?(info, rubies)
          GemFolder.new(info, console: console).install_for_tests.each { |line| console.say(line) }
        end
        Extension.new(info, console: console, variant: variant).build unless variant.empty?
      end
    end

    # Programs that are missing make tests skip, and are named here.
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

    def jobs_on(rubies, selection = @selection)
      jobs = rubies.flat_map { |info| file_jobs(info, selection.of(info, rubies)) }
      @whole ? jobs + checks : jobs
    end

    def file_jobs(info, files)
      filtered = @options.any?(/\A(-n|--name|-i|--include|-e|-x|--exclude)/)
      command = [File.join(ROOT, "bin/ruby"), "-I", "test", "tools/testing/test_process.rb"]
      program = TestProgram.new(environment(info), command)
      files.map do |file|
        starter = File.read(File.expand_path(file, ROOT), 400).match?(UNFORKED) ? program : @forkers[info]
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
