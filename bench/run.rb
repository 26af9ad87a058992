# frozen_string_literal: true

# The benchmarks. Start here: bin/ruby bench/run.rb --help
#
# Every row is plain Ruby in rows/, every implementation an adapter in peers/. Each row runs on each peer in a process
# of its own with a time limit, peers by turns, and its result is checked. An absolute time means little on another
# machine; the ratio of two peers in one run does. Rows that belong together are a group with its own table:
# single operations, servers, many that wait, some that compute, memory, would-block errors, replaced methods,
# connections by name, memcached, a database.

require_relative "support/session"

begin
  Bench.load_all
  options = Bench::Options.new(ARGV)
  report = Bench::Session.new(options).run
  puts options.json ? report.to_json : report.to_s
  File.write(options.output, report.to_s(markdown: true)) if options.output
  exit({ met: 0, over: 1, unknown: 3 }.fetch(report.verdict)) if options.check
rescue Interrupt
  abort("stopped")
end
