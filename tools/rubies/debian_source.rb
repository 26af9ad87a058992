# frozen_string_literal: true

require_relative "private_apt"

module Tools
  # Fetches a Ruby's source package from Debian.
  class DebianSource
    # Where each series is looked for, in this order.
    SUITES = { "3.3" => %w[trixie forky sid] }.tap { |suites| suites.default = %w[experimental forky sid] }.freeze

    # @param series [String] "3.3"
    # @param work [String] an existing folder for the unfinished
    def initialize(series, work:, console:)
      @series = series
      @package = "ruby#{series}"
      @work = work
      @console = console
      @log = File.join(Tools.cache, "log", "source-#{series}.log")
    end

    # @return [String] folder with the patched source, kept for a run that is interrupted later
    def fetch
      ready || @console.step("fetching Ruby #{@series}'s source package", takes: "up to 1 minute") do |show|
        FileUtils.rm_f(@log)
        unpacked = first_from_suites(show)
        # Debian's patches are newer than configure, and make would run autoconf.
        FileUtils.touch(File.join(unpacked, "configure"))
        target = File.join(sources, "ruby-#{version_of(unpacked)}")
        FileUtils.mkdir_p(sources)
        File.rename(unpacked, target)
        target
      end
    end

    # @return [String] such as "3.3.8"
    def version_of(folder)
      header = File.read(File.join(folder, "include/ruby/version.h"))
      teeny = File.read(File.join(folder, "version.h"))[/RUBY_VERSION_TEENY\s+(\d+)/, 1]
      "#{%w[MAJOR MINOR].map { |part| header[/RUBY_API_VERSION_#{part}\s+(\d+)/, 1] }.join(".")}.#{teeny}"
    end

    private

    def sources
      File.join(Tools.cache, "src")
    end

    def ready
      Dir.glob(File.join(sources, "ruby-#{@series}.*")).max
    end

    def first_from_suites(show)
      SUITES[@series].product(PrivateApt.mirrors).each do |suite, mirror|
        unpacked = from_suite(suite, mirror, show)
        return unpacked if unpacked
      end
      raise Problem.new("Ruby #{@series}'s source package cannot be had (no network?)", log: @log)
    end

    def from_suite(suite, mirror, show)
      apt = PrivateApt.new(File.join(@work, "apt-#{suite}"), suite: suite, mirror: mirror, types: "deb-src", log: @log)
      apt.get("update", show: show)
      versions(apt).each do |version|
        # A listed version may be gone from the mirror: the next one may not.
        folder = File.join(@work, "#{suite}-#{version.gsub(/[^\w.]/, "-")}")
        FileUtils.mkdir_p(folder)
        apt.get("source", "#{@package}=#{version}", show: show, chdir: folder)
        return Dir.glob("#{folder}/*/configure").map { |path| File.dirname(path) }.first
      rescue Problem
        next
      end
      nil
    rescue Problem
      nil
    end

    # @return [Array<String>] newest first
    def versions(apt)
      apt.cache("showsrc", "--only-source", @package).scan(/^Version: (\S+)$/).flatten.uniq
        .select { |version| version.start_with?("#{@series}.") }
        .sort { |a, b| Tools.newer?(a, b) ? -1 : 1 }
    end
  end
end
