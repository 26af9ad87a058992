# frozen_string_literal: true

require "etc"
require "shellwords"
require_relative "dear_calls"
require_relative "page_faults"

module Bench
  # What the figures depend on: Ruby, backend, kernel, machine, versions of Heddle and of the peers.
  module Environment
    module_function

    # @param load [String] of the machine before the run
    # @param seconds [Numeric] how long it took
    def describe(runner, options, command:, load:, seconds:)
      { "Ruby" => "#{RUBY_DESCRIPTION}, in the children #{options.yjit ? "with" : "without"} YJIT",
        "Heddle" => heddle,
        "kernel" => "#{Etc.uname[:sysname]} #{Etc.uname[:release]}",
        "machine" => "#{Etc.nprocessors} x #{processor}",
        "calls" => calls(options.dear_calls),
        "load" => "#{load} before, #{self.load} after",
        "peers" => peers(runner.cells.values).join(", "),
        **runner.facts,
        "made" => "#{Time.now.strftime("%Y-%m-%d")}, in #{seconds.round} s",
        "made with" => Shellwords.join([command, *options.given]) }
    end

    # What a system call and a page fault take.
    def calls(made_dear)
      dear = " (made dear for the peers: at least #{made_dear} ns)" if made_dear
      "a system call takes #{DearCalls.cost} ns#{dear}, a page fault #{PageFaults.cost} ns"
    end

    # The mean number of processes that wanted to run in the last minute.
    def load = File.exist?("/proc/loadavg") ? File.read("/proc/loadavg").split.first : "unknown"

    def processor
      File.exist?("/proc/cpuinfo") ? File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1].to_s.strip : RUBY_PLATFORM
    end

    # "0.1.0, commit 1234567"
    def heddle
      require_relative "../../lib/heddle/version"
      commit = IO.popen(%w[git rev-parse --short HEAD], chdir: ROOT, err: File::NULL, &:read).strip
      [Heddle::VERSION, *("commit #{commit}" unless commit.empty?)].join(", ")
    rescue Errno::ENOENT
      Heddle::VERSION
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
