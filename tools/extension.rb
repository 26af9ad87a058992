# frozen_string_literal: true

require "digest"
require_relative "command"
require_relative "lock"

module Tools
  # The native extension for one Ruby's ABI. The release build stands in lib/,
  # every variant in build/<variant>/, so that none takes another's place.
  class Extension
    SOURCE = File.join(ROOT, "ext/heddle")

    # @param pedantic [Boolean] whether a warning is an error
    def initialize(info, console:, variant: "release", pedantic: ENV["HEDDLE_PEDANTIC"] == "1")
      raise Problem, "#{variant.inspect} is no name for a variant" unless variant.match?(/\A[a-z][a-z0-9_-]*\z/)

      @info = info
      @console = console
      @variant = variant
      @pedantic = pedantic
      # Objects stay here, so that the next build compiles only what changed.
      @objects = File.join(Tools.tmp, "build", "#{info.abi}-#{info.platform}", variant)
      @log = File.join(@objects, "build.log")
    end

    # @return [String] the shared object
    def target
      base = @variant == "release" ? "lib" : "build/#{@variant}"
      File.join(ROOT, base, "heddle", @info.abi, "heddle_native.so")
    end

    # A build without warnings is as good as any other.
    def current?
      return false unless File.exist?(target) && File.exist?(stamp)

      good = ["#{digest} pedantic"]
      good << digest unless @pedantic
      good.include?(File.read(stamp))
    end

    # @return [Boolean] whether there was something to do
    def build
      return false if current?

      Lock.hold(File.join(Tools.tmp, "build.lock"), console: @console) do
        return false if current?

        name = "compiling the extension for Ruby #{@info.series}#{" (#{@variant})" unless @variant == "release"}"
        @console.step(name) { |show| compile(show) }
        show_warnings
      end
      true
    end

    private

    def stamp
      File.join(@objects, "built")
    end

    def sources
      names = Dir.glob("**/*.{rb,c,h}", base: SOURCE).sort
      names << "../../test/faults/inject.c" if @variant == "faults"
      @sources ||= names.to_h { |name| [name, File.read(File.join(SOURCE, name))] }
    end

    def digest
      @digest ||= Digest::SHA256.hexdigest([sources.to_a, settings].flatten.join("\0"))
    end

    # What make does not see: a change there means to compile everything again.
    def settings
      [sources.reject { |name, _| name.end_with?(".c") }.to_a, sources.keys, @info.compiler, @info.platform,
       ENV.values_at("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS").map(&:to_s)]
    end

    def compile(show)
      FileUtils.rm_f(stamp)
      prepare(show)
      make(show)
      built = Dir.glob(File.join(@objects, "**/heddle_native.so")).max_by { |path| File.mtime(path) }
      raise Problem, "make left no heddle_native.so" unless built

      install(built)
      Tools.write_whole(stamp, @pedantic ? "#{digest} pedantic" : digest)
    rescue Problem => e
      # All that the compiler said.
      warn File.read(@log) if File.exist?(@log)
      raise Problem.new("the extension does not compile for #{@info}: #{e.message}", remedies: missing_tools)
    end

    def wanted_settings
      Digest::SHA256.hexdigest([settings, @info.exe, @pedantic.to_s].flatten.join("\0"))
    end

    def remembered_settings
      File.join(@objects, "settings")
    end

    # Objects of a build that was killed, or that was set up differently, are not to be trusted.
    def prepare(show)
      FileUtils.rm_f(@log)
      return if File.exist?(remembered_settings) && File.read(remembered_settings) == wanted_settings

      FileUtils.rm_rf(@objects)
      FileUtils.mkdir_p(@objects)
      script = File.join(SOURCE, "extconf.rb")
      Command.run(@info.exe, script, log: @log, env: environment, chdir: @objects, on_line: show)
    end

    def make(show)
      FileUtils.rm_f(remembered_settings)
      Command.run("make", "-j#{Tools.processors}", log: @log, env: environment, chdir: @objects, on_line: show)
      File.write(remembered_settings, wanted_settings)
    rescue Problem
      File.write(remembered_settings, wanted_settings) # the compiler said no: the other objects are whole
      raise
    end

    # By rename: whoever has the old one loaded keeps it.
    def install(built)
      FileUtils.mkdir_p(File.dirname(target))
      FileUtils.cp(built, "#{target}.#{$PROCESS_ID}")
      File.rename("#{target}.#{$PROCESS_ID}", target)
    end

    def environment
      { "HEDDLE_VARIANT" => @variant, "HEDDLE_PEDANTIC" => @pedantic ? "1" : nil }
    end

    def show_warnings
      lines = File.readlines(@log)
      return if lines.none? { |line| line.include?("warning:") }

      warn lines.drop_while { |line| !line.include?("warning:") }.join
    end

    def missing_tools
      %w[gcc make].reject { |name| Tools.which(name) }
        .map { |name| "missing: #{name}: as root, apt-get install #{name}" }
    end
  end
end
