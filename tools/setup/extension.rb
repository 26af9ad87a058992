# frozen_string_literal: true

require_relative "../command"
require_relative "../lock"

module Tools
  # The native extension for one Ruby's ABI. The release build stands in lib/, every variant in build/<variant>/, so
  # that none takes another's place.
  #
  # `rake compile` makes the same files for the Ruby that runs it. It is not used here since it needs the gems
  # rake and rake-compiler for that Ruby: this is what runs on a machine that has no gem yet and perhaps no network,
  # for several Rubies one after the other, on whatever Ruby the machine came with.
  class Extension
    SOURCE = File.join(ROOT, "ext/heddle")
    INJECTION = File.join(ROOT, "test/faults/inject.c") # (part of the variant "faults")

    # @param pedantic [Boolean] whether a warning is an error
    # @param kqueue [String, nil] the folder of libkqueue: the build has the kqueue backend, too
    def initialize(info, console:, variant: "release", pedantic: ENV["HEDDLE_PEDANTIC"] == "1", kqueue: nil)
      raise Problem, "#{variant.inspect} is no name for a variant" unless variant.match?(/\A[a-z][a-z0-9_-]*\z/)

      @info = info
      @console = console
      @variant = variant
      @pedantic = pedantic
      @kqueue = kqueue
      # Objects stay here, so that make compiles only what changed.
      @objects = File.join(Tools.tmp, "build", info.key, variant + ("-pedantic" if pedantic).to_s +
                                                                  ("-kqueue" if kqueue).to_s)
      @log = File.join(@objects, "build.log")
    end

    # @return [String] the shared object
    def target
      base = @variant == "release" ? "lib" : "build/#{@variant}"
      base = "build/kqueue" if @kqueue && @variant == "release"
      File.join(ROOT, base, "heddle", @info.abi, "heddle_native.so")
    end

    # Whoever wants no warning, or kqueue, asks make itself, which has objects of its own for that.
    def current?
      !@pedantic && !@kqueue && newer_than_sources?(target)
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

    # A folder is as new as the last file that came to it or went.
    def newer_than_sources?(path, patterns = ["**/*"])
      made = File.mtime(path)
      sources = Dir.glob(patterns, base: SOURCE).map { |name| File.join(SOURCE, name) }
      [SOURCE, INJECTION, *sources].all? { |source| File.mtime(source) < made }
    rescue Errno::ENOENT
      false
    end

    def compile(show)
      FileUtils.mkdir_p(@objects)
      FileUtils.rm_f(@log)
      makefile = File.join(@objects, "Makefile")
      # It depends on extconf.rb, and on what files there are.
      run(show, @info.exe, *extconf) unless newer_than_sources?(makefile, %w[extconf.rb **/])
      run(show, "make", "-j#{Tools.processors}")
      install
    rescue Problem => e
      # All that the compiler said.
      warn File.read(@log) if File.exist?(@log)
      raise Problem.new("the extension does not compile for #{@info}: #{e.message}", remedies: missing_tools)
    end

    def extconf = [File.join(SOURCE, "extconf.rb"), *("--with-kqueue=#{@kqueue}" if @kqueue)]

    def run(show, *command)
      environment = { "HEDDLE_VARIANT" => @variant, "HEDDLE_PEDANTIC" => @pedantic ? "1" : nil }
      Command.run(*command, log: @log, env: environment, chdir: @objects, on_line: show)
    end

    # By rename: whoever has the old one loaded keeps it.
    def install
      FileUtils.mkdir_p(File.dirname(target))
      FileUtils.cp(File.join(@objects, "heddle_native.so"), "#{target}.#{$PROCESS_ID}")
      File.rename("#{target}.#{$PROCESS_ID}", target)
    end

    def show_warnings
      lines = File.readlines(@log)
      warn lines.drop_while { |line| !line.include?("warning:") }.join if lines.any?(/warning:/)
    end

    def missing_tools
      %w[gcc make].reject { |name| Tools.which(name) }
        .map { |name| "missing: #{name}: as root, apt-get install #{name}" }
    end
  end
end
