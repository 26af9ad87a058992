# frozen_string_literal: true

require_relative "../command"

module Tools
  # Fetches a Ruby's source package from Debian with an apt of its own: private
  # lists and sources, so that the machine's apt is not touched and root not needed.
  class DebianSource
    # Where each series is looked for, in this order.
    SUITES = { "3.3" => %w[trixie forky sid] }.tap { |suites| suites.default = %w[experimental forky sid] }.freeze
    KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

    # The places that the machine's own packages come from, as apt's configuration names them.
    # (`apt-get indextargets` knows none before the first update, and most container images have had none.)
    #
    # @return [Array<String>] Debian's own first
    def self.mirrors
      text = Command.output("apt-get", "update", "--print-uris", "-o", "Debug::NoLocking=1").to_s
      uris = text.scan(%r{^'([^']+?)/dists/}).flatten.uniq.reject { |uri| uri.include?("security") }
      raise Problem, "apt knows no mirror of Debian to fetch Ruby's source from" if uris.empty?

      uris.partition { |uri| uri.match?(%r{/debian/?\z}) }.flatten
    end

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
      SUITES[@series].product(self.class.mirrors).each do |suite, mirror|
        unpacked = from_suite(suite, mirror, show)
        return unpacked if unpacked
      end
      raise Problem.new("Ruby #{@series}'s source package cannot be had (no network?)", log: @log)
    end

    def from_suite(suite, mirror, show)
      config = configure_apt(suite, mirror)
      apt("apt-get", config, show, "update")
      versions(config).each do |version|
        # A listed version may be gone from the mirror: the next one may not.
        folder = File.join(@work, "#{suite}-#{version.gsub(/[^\w.]/, "-")}")
        FileUtils.mkdir_p(folder)
        apt("apt-get", config, show, "source", "#{@package}=#{version}", chdir: folder)
        return Dir.glob("#{folder}/*/configure").map { |path| File.dirname(path) }.first
      rescue Problem
        next
      end
      nil
    rescue Problem
      nil
    end

    def configure_apt(suite, mirror)
      folder = File.join(@work, "apt-#{suite}")
      %w[state/lists/partial cache/archives/partial sources].each { |name| FileUtils.mkdir_p(File.join(folder, name)) }
      File.write(File.join(folder, "sources/debian.sources"), <<~SOURCES)
        Types: deb-src
        URIs: #{mirror}
        Suites: #{suite}
        Components: main
        Signed-By: #{KEYRING}
      SOURCES
      # Without Error-Mode, update ends well when offline.
      File.write(File.join(folder, "apt.conf"), <<~CONFIG)
        Dir::State "#{folder}/state";
        Dir::State::Lists "#{folder}/state/lists";
        Dir::Cache "#{folder}/cache";
        Dir::Etc::SourceList "/dev/null";
        Dir::Etc::SourceParts "#{folder}/sources";
        APT::Update::Error-Mode "any";
        APT::Sandbox::User "root";
        Acquire::Retries "3";
        Acquire::http::Timeout "30";
        Acquire::Languages "none";
        #clear APT::Update::Pre-Invoke;
        #clear APT::Update::Post-Invoke;
        #clear APT::Update::Post-Invoke-Success;
      CONFIG
      File.join(folder, "apt.conf")
    end

    # @return [Array<String>] newest first
    def versions(config)
      text = Command.output("apt-cache", "-c", config, "showsrc", "--only-source", @package).to_s
      text.scan(/^Version: (\S+)$/).flatten.uniq
        .select { |version| version.start_with?("#{@series}.") }
        .sort { |a, b| Tools.newer?(a, b) ? -1 : 1 }
    end

    def apt(program, config, show, *arguments, chdir: nil)
      Command.run(program, "-q", "-c", config, *arguments, log: @log, on_line: show, chdir: chdir)
    end
  end
end
