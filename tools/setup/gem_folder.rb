# frozen_string_literal: true

require_relative "../command"
require_relative "../lock"

module Tools
  # The Gemfile's gems for one Ruby, in a folder of ours. The lock file is there too.
  class GemFolder
    # What bench/ compares with where it can: each is tried by itself, since some
    # need a newer Ruby and some do not compile everywhere.
    RIVALS = %w[carbon_fiber itsi-scheduler uringmachine].freeze
    TEST_GEMS = File.join(__dir__, "test_gems.txt")

    def initialize(info, console:)
      @info = info
      @console = console
      @folder = File.join(Tools.cache, "gems", info.key)
      @log = File.join(Tools.cache, "log", "gems-#{info.version}.log")
    end

    # @return [String] what belongs in GEM_PATH
    def path
      File.join(@folder, "ruby", @info.abi)
    end

    def current?
      File.exist?(stamp) && File.read(stamp) == gemfile
    end

    def install
      return if current?

      alone { install_all unless current? }
    end

    # @return [Array<String>] one line for each rival: what happened
    def install_rivals = RIVALS.map { |name| try(name) }

    # The clients with C code that the tests use. Where one cannot be had, its tests skip.
    # @return [Array<String>] one line for each that was missing: what happened
    def install_for_tests
      names = File.readlines(TEST_GEMS, chomp: true).grep_v(/\A(#|\s*\z)/)
      return [] if missing(names).empty?

      alone { missing(names).then { |absent| absent.empty? ? [] : try_together(absent) } }
    end

    def remedies
      return [] if current?

      ["missing: development gems (#{gemfile.scan(/^\s*gem "([^"]+)"/).flatten.join(", ")}): " \
       "run bin/setup again with the network up"]
    end

    private

    # Two that install the same gem at once remove each other's files.
    def alone(&) = Lock.hold("#{@folder}.lock", console: @console, &)

    def missing(names) = names.reject { |name| here?(*name.split(":")) }

    def here?(name, requirement = nil)
      require "rubygems" # the tools are started without it
      wanted = Gem::Requirement.create(requirement)
      files = Dir.glob("#{name}-[0-9]*.gemspec", base: File.join(path, "specifications"))
      files.any? { |file| wanted.satisfied_by?(Gem::Version.new(file[/\A#{name}-(\d[^-]*?)(-|\.gemspec)/, 1])) }
    end

    # @return [String] what happened
    def try(name)
      @console.step("trying #{name} on Ruby #{@info.version}") { |show| gem_install([name], show) }
      "#{name}: installed"
    rescue Problem
      "#{name}: not for Ruby #{@info.version} (#{@log})"
    end

    # RubyGems goes on with the next one when one cannot be had; then each of these is tried alone, for its log.
    def try_together(names)
      title = "installing #{names.size} gems of the tests for Ruby #{@info.version}"
      @console.step(title, takes: "a few minutes") { |show| gem_install(names, show) }
      names.map { |name| "#{name}: installed" }
    rescue Problem
      names.map { |name| missing([name]).any? ? try(name) : "#{name}: installed" }
    end

    def gem_install(names, show)
      Command.run(@info.exe, "-S", "gem", "install", "--no-document", "--conservative", "--install-dir", path, *names,
                  log: @log, env: { "GEM_PATH" => "#{path}:", "MAKEFLAGS" => "-j#{Tools.processors}" }, on_line: show)
    end

    def stamp
      File.join(@folder, "installed")
    end

    def gemfile
      @gemfile ||= File.read(File.join(ROOT, "Gemfile"))
    end

    # With the lock file of an earlier run Bundler needs no network, if all gems are there.
    def install_all
      @console.step("installing the development gems for Ruby #{@info.version}", takes: "up to 1 minute") do |show|
        FileUtils.mkdir_p(@folder)
        FileUtils.rm_f(@log)
        File.write(File.join(@folder, "Gemfile"), gemfile)
        bundle_install(show)
        Tools.write_whole(stamp, gemfile)
      end
    end

    def bundle_install(show)
      settings = {
        "BUNDLE_GEMFILE" => File.join(@folder, "Gemfile"), "BUNDLE_PATH" => @folder, "BUNDLE_APP_CONFIG" => @folder,
        "BUNDLE_JOBS" => Tools.processors.to_s, "BUNDLE_RETRY" => "3", "BUNDLE_SILENCE_ROOT_WARNING" => "1",
        "BUNDLE_IGNORE_MESSAGES" => "1", "BUNDLE_DISABLE_VERSION_CHECK" => "1"
      }
      Command.run(@info.exe, "-e", 'load Gem.bin_path("bundler", "bundle")', "install",
                  log: @log, env: settings, chdir: @folder, on_line: show, failure: "the gems could not be installed")
    rescue Problem => e
      raise Problem.new("#{e.message} (no network?)", remedies: remedies, log: @log)
    end
  end
end
