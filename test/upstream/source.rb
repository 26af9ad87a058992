# frozen_string_literal: true

require "rbconfig"
require "yaml"

# What run.rb and suites.rb share.
module Upstream
  HERE = __dir__
  ROOT = File.expand_path("../..", HERE)

  # A checkout of CRuby's source at the tag of the running Ruby. Nothing of it is kept here.
  class Source
    # @param folder [String, nil] what --source says
    def initialize(folder)
      abort "--source DIR: a checkout of CRuby at the tag of this Ruby (#{RUBY_VERSION})" unless folder
      @folder = File.expand_path(folder)
      abort "#{@folder} is CRuby #{version}, but this is Ruby #{RUBY_VERSION}" unless version == RUBY_VERSION
    end

    def path(*parts) = File.join(@folder, *parts)

    # CRuby's test runner, for these files.
    def command(*files, name: nil, load_path: [])
      paths = [*load_path, path("tool/lib")].map { |folder| "-I#{folder}" }
      [RbConfig.ruby, *paths, path("tool/test/runner.rb"), "--ruby=#{RbConfig.ruby}", "-v", *(name && ["-n", name]),
       *files]
    end

    private

    def version
      numbers = File.read(path("include/ruby/version.h"))
      teeny = File.read(path("version.h"))[/RUBY_VERSION_TEENY (\d+)/, 1]
      [numbers[/API_VERSION_MAJOR (\d+)/, 1], numbers[/API_VERSION_MINOR (\d+)/, 1], teeny].join(".")
    end
  end

  # A list of tests that do not pass, each with the reason why that is right: "Class#test" => { rubies: ["3.3", ...],
  # backends: ["uring", ...] (all if left out; "threads" and "beside" are these options of suites.rb), sometimes: true
  # (may pass), reason: "..." }.
  class Exceptions
    def initialize(file)
      @file = file
      @entries = YAML.load_file(File.join(HERE, file), aliases: true) || {}
    end

    attr_reader :file

    # @return [Hash, nil] the entry of a test, if it is for this Ruby
    def find(test, backends)
      entry = @entries[test]
      entry if entry && in?(entry["rubies"], RUBY_VERSION[/\d+\.\d+/]) && in?(entry["backends"], *backends)
    end

    private

    def in?(list, *values) = list.nil? || list.intersect?(values)
  end

  # The folders for -I: this gem's, and in front a build variant that this process was started with (-I build/assert).
  def self.load_path
    [*$LOAD_PATH.select { |path| path.start_with?(File.join(ROOT, "build")) }, File.join(ROOT, "lib")]
  end
end
