# frozen_string_literal: true

require "digest"
require_relative "../console"
require_relative "gem_file"
require_relative "bare_install"
require_relative "contents"
require_relative "facts"

module Tools
  module Release
    # `rake release:check`: whether the gems of this repository can be published. It builds them into a folder, with
    # their checksums.
    class Check
      STEPS = { "versions" => :versions, "changelogs" => :changelogs, "sources and tag" => :sources,
                "signatures (RBS)" => :signatures, "API reference (YARD)" => :reference, "the gems" => :gems,
                "the same bytes twice" => :reproducible, "installation" => :installation,
                "checksums" => :checksums }.freeze
      CHECKSUMS = "SHA256SUMS"

      # @param folder [String] where the gems are built
      # @param tag [String, nil] of the release; without one it is a rehearsal, for which the date in the changelog and
      #   the tag may be missing
      def initialize(folder:, tag: nil, console: Console.new)
        @folder = File.expand_path(folder)
        @facts = Facts.new(tag: tag)
        @console = console
      end

      # @return [Boolean] whether nothing is wrong
      def run
        failed = STEPS.reject { |title, name| passes?(title, name) }
        result = failed.empty? ? "everything is right" : "not right: #{failed.keys.join(", ")}"
        @console.say("#{@facts.version}: #{result}")
        failed.empty?
      end

      private

      def passes?(title, name)
        problems = @console.step(title) { send(name) }
        problems.each { |problem| @console.say("  #{problem}") }
        problems.empty?
      rescue Problem => e
        e.report.each { |line| @console.say("  #{line}") }
        false
      end

      def versions = @facts.versions

      def changelogs = @facts.changelogs

      def sources = @facts.sources

      # (The test that compares calls with the signatures takes long, and is in the suite.)
      def signatures = test("test/sig/signatures_test.rb", "--exclude", "/arguments_and_values/")

      def reference = test("test/docs/reference_test.rb")

      def test(file, *options)
        text = IO.popen([RbConfig.ruby, "-Itest", file, *options, { chdir: ROOT, err: %i[child out] }], &:read)
        $CHILD_STATUS.success? ? [] : text.lines(chomp: true).last(30)
      end

      def gems
        built = GemFile::GEMSPECS.map { |path| [path, GemFile.new(path).build(@folder)] }
        compiled = files - built.map(&:last)
        built += compiled.map { |file| [GemFile::GEMSPECS.first, file] }
        built.flat_map { |path, file| Contents.new(file, known(File.dirname(path))).problems }
      end

      # All gems of this version in the folder, also the gems that `rake gem:native` has put there.
      def files = Dir.glob(File.join(@folder, "heddle{,-server}-#{@facts.version}{,-*}.gem"))

      def known(folder)
        text = Command.output("git", "ls-files", "-z", chdir: File.join(ROOT, folder))
        raise Problem, "git does not say which files belong here" unless text

        text.split("\0")
      end

      # Another process, with another umask and another zone, at another second.
      def reproducible
        Dir.mktmpdir("heddle-again-") do |again|
          code = "File.umask(0o077); ARGV[1..].each { |path| Tools::GemFile.new(path).build(ARGV[0]) }"
          environment = { "TZ" => "Asia/Tokyo", "SOURCE_DATE_EPOCH" => GemFile.epoch }
          Command.run(RbConfig.ruby, "-r", File.join(__dir__, "gem_file"), "-e", code, again, *GemFile::GEMSPECS,
                      log: File.join(Tools.tmp, "release.log"), env: environment, failure: "the second build failed")
          Dir.children(again).reject { |name| FileUtils.identical?(File.join(again, name), File.join(@folder, name)) }
            .map { |name| "#{name} has other bytes when it is built again" }
        end
      end

      def installation
        fitting = files.select { |file| File.basename(file).start_with?("heddle-#{@facts.version}") && fits?(file) }
        fitting.filter_map do |file|
          attempt = BareInstall.new(RbConfig.ruby, file, compiled: compiled?(file)).try
          @console.say("  #{attempt}")
          "#{File.basename(file)} takes longer than #{attempt.limit} s" if attempt.seconds > attempt.limit
        end
      end

      def compiled?(file) = Gem::Package.new(file).spec.platform != Gem::Platform::RUBY

      def fits?(file)
        spec = Gem::Package.new(file).spec
        return false unless spec.required_ruby_version.satisfied_by?(Gem.ruby_version)

        Gem::Platform.match_spec?(spec)
      end

      # In the form of sha256sum, which verifies it: sha256sum --check SHA256SUMS.
      def checksums
        lines = files.sort.map { |file| "#{Digest::SHA256.file(file).hexdigest}  #{File.basename(file)}\n" }
        Tools.write_whole(File.join(@folder, CHECKSUMS), lines.join)
        lines.empty? ? ["no gem is in #{@folder}"] : []
      end
    end
  end
end
