# frozen_string_literal: true

require_relative "../setup/apt"
require_relative "debian_source"
require_relative "ruby_info"

module Tools
  # Builds a Ruby with YJIT from Debian's source package into the cache.
  class RubyBuild
    PACKAGES = %w[
      gcc make libc6-dev dpkg-dev pkg-config libssl-dev libyaml-dev zlib1g-dev libffi-dev libgmp-dev libreadline-dev
    ].freeze
    # What YJIT of 3.3 and 3.4 is written for.
    OLDEST_RUSTC = "1.58"

    def initialize(series, console:)
      @series = series
      @console = console
      @log = File.join(Tools.cache, "log", "ruby-#{series}.log")
    end

    # @return [RubyInfo] the finished Ruby
    def build
      with_work_folder do |work|
        Apt.new(@console).install(needed_packages)
        fetcher = DebianSource.new(@series, work: work, console: @console)
        source = fetcher.fetch
        version = fetcher.version_of(source)
        compile(source, version, work)
        FileUtils.rm_rf(source)
        check(RubyInfo.at(File.join(prefix(version), "bin/ruby")))
      end
    end

    # Debian's rustc is added only where none will do.
    def needed_packages
      PACKAGES + (rustc ? [] : ["rustc"])
    end

    # One line for each piece that is missing on this machine.
    def remedies
      packages = Apt.remedies(Apt.missing(needed_packages))
      packages + ["missing: Ruby >= #{OLDEST_RUBY}: run bin/setup again with the network up, " \
                  "or name one: HEDDLE_RUBY=/path/to/ruby"]
    end

    private

    # What an interrupted run left there is worth nothing: we hold the lock, so nobody uses it.
    def with_work_folder
      all = File.join(Tools.cache, "work")
      FileUtils.rm_rf(all)
      FileUtils.mkdir_p(all)
      yield all
    ensure
      FileUtils.rm_rf(all)
    end

    def prefix(version)
      File.join(Tools.cache, "rubies", version)
    end

    # @return [String, nil] path of a Rust compiler that YJIT can be built with
    def rustc
      found = [Tools.which("rustc"), "/usr/bin/rustc"].compact.uniq.find do |path|
        version = Command.output(path, "--version").to_s[/\d+\.\d+\S*/]
        version && !Tools.newer?(OLDEST_RUSTC, version)
      end
      found && File.expand_path(found)
    end

    def compile(source, version, work)
      FileUtils.rm_f(@log)
      build = File.join(work, "build")
      stage = File.join(work, "stage")
      FileUtils.mkdir_p(build)
      @console.step("configuring Ruby #{version}", takes: "about 1 minute") do |show|
        configure(source, version, build, show)
      end
      @console.step("compiling Ruby #{version}", takes: "2 to 4 minutes") do |show|
        make(build, show, "-j#{Tools.processors}")
      end
      @console.step("installing Ruby #{version} in #{prefix(version)}") do |show|
        make(build, show, "install", "DESTDIR=#{stage}")
        # One rename, so that half an installation never looks whole.
        FileUtils.mkdir_p(File.dirname(prefix(version)))
        FileUtils.rm_rf(prefix(version))
        File.rename(File.join(stage, prefix(version)), prefix(version))
      end
    end

    def configure(source, version, build, show)
      compiler = rustc
      Command.run(File.join(source, "configure"), "--prefix=#{prefix(version)}", "--disable-install-doc",
                  "--enable-yjit=#{compiler ? "yes" : "no"}", "debugflags=-g0", *("RUSTC=#{compiler}" if compiler),
                  log: @log, chdir: build, on_line: show, failure: "configuring Ruby #{version} failed")
    end

    def make(folder, show, *arguments)
      Command.run("make", *arguments, log: @log, chdir: folder, on_line: show, failure: "making Ruby failed")
    end

    def check(info)
      raise Problem.new("the Ruby just built does not run", log: @log) unless info
      raise Problem.new("Ruby #{info.version} lacks openssl, psych or zlib", log: @log) unless info.whole?

      @console.say("Ruby #{info.version} has no YJIT: everything works, but slower") unless info.yjit
      info
    end
  end
end
