# frozen_string_literal: true

require_relative "../console"
require_relative "binary"

module Tools
  module Native
    # `bin/build --check-platforms`: does each file of the extension compile without a warning for the systems on which
    # no test runs here? It says what was left out, and why.
    class PlatformCheck
      # The headers of FreeBSD's C library, which zig has from 0.15 on: /usr/include of a FreeBSD.
      FREEBSD = "HEDDLE_FREEBSD_INCLUDE"

      # Compiles the objects, and links nothing.
      class Objects < Binary
        # @param system_headers [String, nil] the folder of the C library's headers; nil: the compiler has them
        def initialize(info, target, console:, system_headers: nil)
          super(info, target, console:)
          @folder = File.join(@folder, "checked")
          @log = File.join(@folder, "build.log")
          @system_headers = system_headers
        end

        # @return [Integer] how many files were compiled
        def check
          compile(takes: "about 1 minute") do |show|
            objects = File.read(File.join(@folder, "Makefile"))[/^OBJS = (.*)/, 1].split
            run(show, "make", "-j#{Tools.processors}", *objects)
            objects.size
          end
        end

        private

        def given
          super.merge(only_checks: true, system_headers: @system_headers ? " -isystem #{@system_headers}" : "")
        end

        def variant = { "HEDDLE_VARIANT" => "assert", "HEDDLE_PEDANTIC" => "1" }
      end

      # @param info [RubyInfo] the Ruby whose headers are used
      def initialize(info, console:)
        @info = info
        @console = console
      end

      # @raise [Problem] if a file does not compile
      # @return [void]
      def run
        Zig.new(console: @console).path
        CHECKED.each { |target| check(target) }
      rescue Zig::Unreachable => e
        @console.say("skipped: #{e.message}")
      end

      private

      def check(target)
        system_headers = ENV.fetch(FREEBSD, nil) if target.system == "freebsd"
        if target.system == "freebsd" && !system_headers
          return @console.say("#{target}: skipped: zig #{Zig::VERSION} lacks its headers. #{FREEBSD} names a folder")
        end

        count = Objects.new(@info, target, console: @console, system_headers:).check
        @console.say("#{target}: #{count} files compile without a warning")
      end
    end
  end
end
