# frozen_string_literal: true

require "rbconfig"
require "tmpdir"

module TestSupport
  # Runs scripts with names and a resolver of their own (fake_resolver.c), as slow and as broken as a test needs it.
  module FakeResolver
    SOURCE = File.join(__dir__, "fake_resolver.c")

    class << self
      # @return [String, nil] the library to preload; nil: it cannot be compiled here
      def library
        return @library if defined?(@library)

        dir = Dir.mktmpdir("heddle-resolver")
        Minitest.after_run { FileUtils.rm_rf(dir) }
        path = File.join(dir, "fake_resolver.so")
        @library = path if compile(path)
      end

      private

      def compile(path)
        compiler = RbConfig::CONFIG["CC"].split.first
        system(compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o", path, SOURCE, "-ldl")
      end
    end

    # @param hosts [String] lines as in fake_resolver.c
    # @return [Hash] the environment of a process that has these names
    def fake_hosts(hosts)
      library = FakeResolver.library or skip("cannot compile a preloaded library here")
      dir = tempdir
      File.write(File.join(dir, "hosts"), hosts)
      { "LD_PRELOAD" => library, "FAKE_HOSTS" => File.join(dir, "hosts"), "FAKE_LOG" => File.join(dir, "log") }
    end

    # @return [Array<String>] the lookups of a process with that environment: name and family
    def lookups(env)
      File.exist?(env["FAKE_LOG"]) ? File.readlines(env["FAKE_LOG"], chomp: true) : []
    end
  end
end
