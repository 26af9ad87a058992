# frozen_string_literal: true

# The guard against regressions: what operations cost in Heddle's tasks, counted, with limits (bench/rows/guard.rb). The
# counts are equal on each machine, so bin/test counts as well. For the times of the same rows: bin/ruby bench/run.rb
# --rows guard

require "optparse"
require_relative "support/guard"
require_relative "peers/heddle"

backends = nil
options = { preloaded: [] }
json = false
OptionParser.new do |on|
  on.banner = "usage: bin/ruby bench/guard.rb [options]\nCounts what operations cost in Heddle's tasks: objects, " \
              "calls, switches, polls and, by strace, system calls.\nExits with 1 if a count is over its limit."
  on.on("--backend A,B", Array, "on these: uring, epoll, ring (uring with shared system calls; default: those that",
        "can be had)") { |names| backends = names }
  on.on("--preload FILE", "loads a file first, which may change Heddle") do |file|
    options[:preloaded] << File.expand_path(file)
  end
  on.on("--tries N", Integer, "times that each row is counted, for the smallest number (default 3)") do |tries|
    options[:tries] = tries.clamp(1..)
  end
  on.on("--json", "print a line of JSON for each backend instead") { json = true }
end.parse!

backends ||= %w[uring epoll].select { |name| Bench.peers["heddle-#{name}"].prepare.call.nil? }
  .then { |names| names.include?("uring") ? [*names, Bench::Guard::SHARED] : names }
outcomes = backends.map do |name|
  Bench::Guard::Check.new(name, **options).run.tap do |outcome|
    puts json ? JSON.generate(outcome.to_h) : "#{outcome}\n\n"
  end
end
exit(outcomes.all? { |outcome| outcome.over.empty? })
