# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "registry"

module Bench
  # A program of bench/c/. It is compiled when it is needed, and again when its source is newer.
  class CProgram
    attr_reader :path

    # @param name [String] of the file, without ".c"
    def initialize(name)
      @source = File.join(ROOT, "c", "#{name}.c")
      @path = File.expand_path("../tmp/bench/#{name}", ROOT)
    end

    # @return [String, nil] why it cannot be had here
    def compile
      return if File.exist?(@path) && File.mtime(@path) > File.mtime(@source)

      FileUtils.mkdir_p(File.dirname(@path))
      cc = ENV.fetch("CC") { RbConfig::CONFIG["CC"].split.first }
      said, status = Open3.capture2e(cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", @path, @source, "-lm")
      "not compiled: #{said.lines.last&.strip}" unless status.success?
    rescue SystemCallError => e
      "not compiled: #{e.message}"
    end
  end
end
