# frozen_string_literal: true

require "rubygems/package"
require "tmpdir"
require_relative "../command"

module Tools
  # A gem as it is published. From the same sources it always has the same bytes, whatever the clock, the umask and the
  # times of the files are: the files are staged with fixed modes, and all times are SOURCE_DATE_EPOCH. The version of
  # RubyGems is in the gem, so it must be the same one.
  class GemFile
    GEMSPECS = %w[heddle.gemspec heddle-server/heddle-server.gemspec].freeze

    # SOURCE_DATE_EPOCH, else the time of the last commit; in an archive without git, RubyGems' own constant.
    # @return [String] seconds
    def self.epoch
      given = ENV.fetch("SOURCE_DATE_EPOCH", "")
      return given unless given.empty?

      (Tools.which("git") && Command.output("git", "log", "-1", "--format=%ct").to_s[/\d+/]) || "315619200"
    end

    attr_reader :spec

    # @param gemspec [String] its path in the repository
    def initialize(gemspec)
      @root = File.dirname(File.join(ROOT, gemspec))
      @spec = Dir.chdir(@root) { Gem::Specification.load(File.basename(gemspec)) }
      @added = {}
    end

    # Makes it the gem of one platform, which has compiled files in place of the sources in C.
    #
    # @param platform [String]
    # @param binaries [Hash{String => String}] the path in the gem => the file
    # @param rubies [Array<String>] the requirement for Ruby
    # @return [self]
    def compiled(platform, binaries, rubies)
      @added = binaries
      @spec.platform = platform
      @spec.extensions = []
      @spec.required_ruby_version = rubies
      @spec.files = (@spec.files.grep_v(%r{\Aext/}) + binaries.keys).sort
      self
    end

    # @param folder [String]
    # @return [String] the path of the gem
    def build(folder)
      target = File.join(File.expand_path(folder), @spec.file_name)
      FileUtils.mkdir_p(File.dirname(target))
      Dir.mktmpdir("heddle-gem-") do |stage|
        @spec.files.each { |name| stage_file(stage, name) }
        at_epoch { Dir.chdir(stage) { quietly { Gem::Package.build(@spec, false, false, target) } } }
      end
      target
    end

    private

    def stage_file(stage, name)
      source = @added.fetch(name) { File.join(@root, name) }
      copy = File.join(stage, name)
      FileUtils.mkdir_p(File.dirname(copy))
      FileUtils.cp(source, copy)
      File.chmod(File.executable?(source) && !@added.key?(name) ? 0o755 : 0o644, copy)
    end

    def at_epoch
      former = ENV.fetch("SOURCE_DATE_EPOCH", nil)
      ENV["SOURCE_DATE_EPOCH"] = self.class.epoch
      @spec.date = Time.at(Integer(ENV.fetch("SOURCE_DATE_EPOCH"), 10)).utc
      yield
    ensure
      ENV["SOURCE_DATE_EPOCH"] = former
    end

    def quietly(&) = Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new, &)
  end
end
