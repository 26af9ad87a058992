# frozen_string_literal: true

require "json"
require_relative "../setup/extension"
require_relative "../rubies/rubies"
require_relative "config_header"
require_relative "target"
require_relative "zig"

module Tools
  module Native
    # The extension for one Ruby on one target, compiled on this machine: extconf.rb runs on the Ruby of this machine
    # that has the same ABI, but finds the compiler and the config.h of the target.
    class Binary
      # @param info [RubyInfo] a Ruby of this machine
      def initialize(info, target, console:)
        @info = info
        @target = target
        @console = console
        @folder = File.join(Tools.tmp, "native", target.name, info.abi)
        @log = File.join(@folder, "build.log")
      end

      # @return [String] its path in the gem
      def name = "lib/heddle/#{@info.abi}/#{file}"

      # @return [String] the path of the file
      def build
        compile { |show| run(show, "make", "-j#{Tools.processors}") }
        File.join(@folder, file)
      end

      private

      def file = "heddle_native.#{@target.suffix}"

      # Makes the Makefile, and runs the block, which runs make.
      def compile(takes: "1 to 3 minutes")
        @zig = Zig.new(console: @console).path
        FileUtils.rm_rf(@folder)
        FileUtils.mkdir_p(@folder)
        @console.step("compiling for Ruby #{@info.series} on #{@target}", takes:) do |show|
          write_headers
          run(show, @info.exe, "-r", File.join(__dir__, "rbconfig.rb"), File.join(Extension::SOURCE, "extconf.rb"))
          yield show
        end
      end

      def headers = File.join(@folder, "include")

      def write_headers
        text = File.read(File.join(File.dirname(@info.header), @info.platform, "ruby/config.h"))
        Tools.write_whole(File.join(headers, "ruby/config.h"), ConfigHeader.new(text, @target.name).to_s)
      end

      def run(show, *command)
        environment = { "HEDDLE_NATIVE" => JSON.generate(given), "HEDDLE_VARIANT" => nil, "HEDDLE_PEDANTIC" => nil }
        Command.run(*command, log: @log, env: environment.merge(variant), chdir: @folder, on_line: show)
      end

      # For rbconfig.rb.
      def given
        { zig: @zig, triple: @target.triple, cpu: @target.cpu, platform: @target.name, system: @target.system,
          suffix: @target.suffix, headers:, root: ROOT, system_headers: "", only_checks: false }
      end

      def variant = {}
    end
  end
end
