# frozen_string_literal: true

# The benchmarks. Start here: bin/ruby bench/run.rb --help
#
# Every row is plain Ruby in rows/, every implementation an adapter in peers/. Each row runs on each peer in a process
# of its own with a time limit, peers by turns, and its result is checked. An absolute time means little on another
# machine; the ratio of two peers in one run does. Rows that belong together are a group with its own table:
# would-block errors, replaced methods, connections by name, memcached, a database.

require_relative "support/registry"
require_relative "support/options"
require_relative "support/runner"
require_relative "support/statistics"
require_relative "support/environment"
require_relative "support/report"

begin
  require "ruby-progressbar"
  require "terminal-table"
rescue LoadError => e
  abort("#{e.message}: the tables need the gems of the Gemfile; bin/setup installs them, bin/ruby finds them")
end

begin
  Bench.load_all
  options = Bench::Options.new(ARGV)
  runner = Bench::Runner.new(rows: options.rows, peers: options.peers, rounds: options.rounds, turns: options.turns,
                             scale: options.scale, timeout: options.timeout, install: options.install,
                             yjit: options.yjit)
  bar = ProgressBar.create(total: runner.steps, output: $stderr, format: "%c/%C |%B| %e  %t", title: "") if $stderr.tty?
  runner.run do |cell|
    bar&.title = "#{cell.row.name}: #{cell.peer.name}".ljust(30)
    bar&.increment unless bar&.finished?
  end
  bar&.finish

  report = Bench::Report.new(options.rows, runner, Bench::Environment.describe(runner, options))
  puts options.json ? report.to_json : report.to_s
  File.write(options.output, report.to_s(markdown: true)) if options.output
rescue Interrupt
  abort("stopped")
end
