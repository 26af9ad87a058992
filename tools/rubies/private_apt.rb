# frozen_string_literal: true

require_relative "../command"

module Tools
  # An apt of its own for one suite of Debian: private lists and sources, so that the machine's apt is not touched and
  # root not needed.
  class PrivateApt
    KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

    # The places that the machine's own packages come from, as apt's configuration names them.
    # (`apt-get indextargets` knows none before the first update, and most container images have had none.)
    #
    # @return [Array<String>] Debian's own first
    def self.mirrors
      text = Command.output("apt-get", "update", "--print-uris", "-o", "Debug::NoLocking=1").to_s
      uris = text.scan(%r{^'([^']+?)/dists/}).flatten.uniq.reject { |uri| uri.include?("security") }
      raise Problem, "apt knows no mirror of Debian" if uris.empty?

      uris.partition { |uri| uri.match?(%r{/debian/?\z}) }.flatten
    end

    # @param folder [String] where it keeps its files
    # @param types [String] "deb" or "deb-src"
    def initialize(folder, suite:, mirror:, types:, log:)
      @folder = folder
      @config = File.join(folder, "apt.conf")
      @log = log
      %w[state/lists/partial cache/archives/partial sources].each { |name| FileUtils.mkdir_p(File.join(folder, name)) }
      write_sources(suite, mirror, types)
      write_config
    end

    # `apt-get` with these arguments.
    #
    # @raise [Problem] when it fails
    def get(*arguments, show: nil, chdir: nil)
      Command.run("apt-get", "-q", "-c", @config, *arguments, log: @log, on_line: show, chdir: chdir)
    end

    # @return [String] what `apt-cache` prints; nothing when it fails
    def cache(*arguments) = Command.output("apt-cache", "-c", @config, *arguments).to_s

    private

    def write_sources(suite, mirror, types)
      File.write(File.join(@folder, "sources/debian.sources"), <<~SOURCES)
        Types: #{types}
        URIs: #{mirror}
        Suites: #{suite}
        Components: main
        Signed-By: #{KEYRING}
      SOURCES
    end

    def write_config
      # Without Error-Mode, update ends well when offline.
      File.write(@config, <<~CONFIG)
        Dir::State "#{@folder}/state";
        Dir::State::Lists "#{@folder}/state/lists";
        Dir::Cache "#{@folder}/cache";
        Dir::Etc::SourceList "/dev/null";
        Dir::Etc::SourceParts "#{@folder}/sources";
        APT::Update::Error-Mode "any";
        APT::Sandbox::User "root";
        Acquire::Retries "3";
        Acquire::http::Timeout "30";
        Acquire::Languages "none";
        #clear APT::Update::Pre-Invoke;
        #clear APT::Update::Post-Invoke;
        #clear APT::Update::Post-Invoke-Success;
      CONFIG
    end
  end
end
