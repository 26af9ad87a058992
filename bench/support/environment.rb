# frozen_string_literal: true

require "etc"
require "shellwords"

module Bench
  # What the figures depend on: Ruby, backend, kernel, machine, versions of the peers.
  module Environment
    module_function

    def describe(runner, options)
      { "Ruby" => "#{RUBY_DESCRIPTION}, in the children #{options.yjit ? "with" : "without"} YJIT",
        "kernel" => "#{Etc.uname[:sysname]} #{Etc.uname[:release]}",
        "machine" => "#{Etc.nprocessors} x #{processor}",
        "load" => File.exist?("/proc/loadavg") ? File.read("/proc/loadavg").split.first(3).join(" ") : "unknown",
        "peers" => peers(runner.cells.values).join(", "),
        **runner.facts,
        "made with" => Shellwords.join(["bench/run.rb", *options.given]) }
    end

    def processor
      File.exist?("/proc/cpuinfo") ? File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1].to_s.strip : RUBY_PLATFORM
    end

    # "async 2.46.0 (URing)"
    def peers(cells)
      cells.group_by { |cell| cell.peer.name }.map do |name, own|
        sample = own.flat_map(&:turns).first || {}
        [name, sample["version"], *("(#{sample["backend"]})" if sample["backend"])].compact.join(" ")
      end
    end
  end
end
