# frozen_string_literal: true

# The published figures: bin/bench --help

require_relative "support/session"
require_relative "support/publication"

module Bench
  # bin/bench: measures all rivals side by side, and writes the report and the table of the README.
  module Publish
    HELP = <<~TEXT
      bin/bench                 measures, writes bench/results/operations-<Ruby>.md and the table of the README
      bin/bench --no-yjit       without YJIT; writes bench/results/operations-<Ruby>-no_yjit.md, and not the README
      bin/bench --print         measures and prints; writes nothing
      bin/bench --seconds 300   in this time: more rounds make figures steadier (default 600)

      It takes the Ruby of bin/ruby; HEDDLE_RUBY=/path/to/ruby takes another one. What is missing (the other
      schedulers, wrk, Redis, PostgreSQL) is installed first, if it can be. All processes that it starts end with it.
      The README keeps the figures of the newest Ruby, with YJIT. Further options: `bin/ruby bench/run.rb --help`.
    TEXT
    # The first round takes longest: whoever hangs has until the timeout, once.
    DEFAULTS = %w[--rows operations,servers,waiting,memory --rounds 9 --scale 0.4 --timeout 12 --seconds 600].freeze

    module_function

    def run(arguments)
      return puts(HELP) if arguments.intersect?(%w[-h --help])

      print_only = arguments.delete("--print")
      options = Options.new(arguments, defaults: DEFAULTS)
      report = Session.new(options, command: "bin/bench", talkative: true).run
      puts report
      Publication.new(report, yjit: options.yjit).write.each { |line| warn(line) } unless print_only
    end
  end
end

begin
  Bench.load_all
  Bench::Publish.run(ARGV)
rescue Interrupt
  abort("stopped")
end
