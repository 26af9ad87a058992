# frozen_string_literal: true

require "optparse"
require_relative "setup/setup"

module Tools
  # bin/build
  class BuildCommand
    def initialize(arguments)
      @ruby = nil
      @variant = "release"
      @pedantic = ENV["HEDDLE_PEDANTIC"] == "1"
      parser.parse!(arguments)
      raise Problem, "what is #{arguments.join(" ")}? See bin/build --help" unless arguments.empty?
    rescue OptionParser::ParseError => e
      raise Problem, "#{e.message}. See bin/build --help"
    end

    def run
      console = Console.new
      info = @ruby ? Rubies.named(@ruby) : State.new(Rubies.request).ruby || Rubies.choose(console)
      raise Problem, "there is no Ruby to build for: run bin/setup, or bin/build --ruby /path/to/ruby" unless info
      return check_platforms(info, console) if @platforms

      extension = Extension.new(info, console: console, variant: @variant, pedantic: @pedantic,
                                      kqueue: @kqueue)
      done = extension.build
      console.say("#{extension.target.delete_prefix("#{ROOT}/")} #{done ? "is made" : "is up to date"}")
      0
    end

    private

    def check_platforms(info, console)
      require_relative "native/platform_check"
      Native::PlatformCheck.new(info, console: console).run
      0
    end

    def parser
      OptionParser.new do |options|
        options.banner = "Compiles the extension into lib/heddle/<ABI>/ or build/<variant>/, if the sources changed."
        options.on("--ruby PATH", "the Ruby to compile for (default: the project's)") { |path| @ruby = path }
        options.on("--variant NAME", "release (default), assert, portable, asan ...") { |name| @variant = name }
        options.on("--with-kqueue DIR", "the kqueue backend, too, into build/: libkqueue is installed in DIR") do |path|
          @kqueue = File.expand_path(path)
        end
        options.on("--check-platforms", "compile for macOS and FreeBSD, with warnings as errors") { @platforms = true }
        options.on("--pedantic", "every warning is an error; as HEDDLE_PEDANTIC=1") { @pedantic = true }
        options.on("-h", "--help") do
          puts options
          exit
        end
      end
    end
  end
end
