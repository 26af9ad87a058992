# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

source = File.join(Bench::ROOT, "c", "echo_epoll.c")
binary = File.expand_path("../tmp/bench/echo_epoll", Bench::ROOT)

compile = lambda do
  next if File.exist?(binary) && File.mtime(binary) > File.mtime(source)

  FileUtils.mkdir_p(File.dirname(binary))
  cc = ENV.fetch("CC") { RbConfig::CONFIG["CC"].split.first }
  said, status = Open3.capture2e(cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-o", binary, source)
  "not compiled: #{said.lines.last&.strip}" unless status.success?
rescue SystemCallError => e
  "not compiled: #{e.message}"
end

# The floor for the echo row: the same work in one bare epoll loop, without any Ruby.
Bench.peer("c", rows: %w[echo], prepare: compile, command: ->(*sizes) { [binary, *sizes.map(&:to_s)] })
