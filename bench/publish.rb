# frozen_string_literal: true

# The published figures: bin/bench --help

require "rbconfig"
require_relative "charts"
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
      bin/bench --all           after that the main job, delays under load, many connections, dear system calls, jobs
                                and web servers, each into its file in bench/results/; then the charts. About two hours

      It takes the Ruby of bin/ruby; HEDDLE_RUBY=/path/to/ruby takes another one. What is missing (the other
      schedulers, wrk, Redis, PostgreSQL) is installed first, if it can be. All processes that it starts end with it.
      The README keeps the figures of the newest Ruby, with YJIT. Further options: `bin/ruby bench/run.rb --help`.
    TEXT
    # The first round takes longest: whoever hangs has until the timeout, once.
    DEFAULTS = %w[--rows operations,servers,waiting,memory --rounds 9 --scale 0.4 --timeout 12 --seconds 600].freeze
    # Further reports: the name of the file, and the options of bench/run.rb.
    FURTHER = {
      "main_job" => %w[--rows main_job],
      "tail" => %w[--rows tail],
      "scale" => %w[--rows scale,ractors],
      "slices" => %w[--rows slices],
      "bounds" => %w[--rows bounds],
      "operations_dear" => %w[--rows operations --dear-calls --rounds 3 --scale 0.2 --timeout 30]
    }.freeze
    # And programs of their own.
    PROGRAMS = %w[round_trip jobs web_servers].freeze

    class << self
      def run(arguments)
        return puts(HELP) if arguments.intersect?(%w[-h --help])

        print_only = arguments.delete("--print")
        all = arguments.delete("--all")
        options = Options.new(arguments, defaults: DEFAULTS)
        report = measure(options)
        Publication.new(report, yjit: options.yjit).write.each { |line| warn(line) } unless print_only
        return unless all && !print_only

        FURTHER.each { |name, wanted| write(name, measure(Options.new(wanted))) }
        PROGRAMS.each { |name| run_program(name) }
        Charts.run.each { |path| warn("written: #{path}") }
      end

      private

      def measure(options)
        Session.new(options, command: "bin/bench", talkative: true).run.tap { |report| puts(report) }
      end

      def write(name, report)
        File.write(Publication.path(name), report.to_s(markdown: true))
        warn("written: #{Publication.path(name)}")
      end

      def run_program(name)
        path = Publication.path(name)
        done = system(RbConfig.ruby, "--yjit", File.join(ROOT, "#{name}.rb"), "--output", path)
        warn(done ? "written: #{path}" : "not written, for it failed: #{path}")
      end
    end
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    Bench.load_all
    Bench::Publish.run(ARGV)
  rescue Interrupt
    abort("stopped")
  end
end
