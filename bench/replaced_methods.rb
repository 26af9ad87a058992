# frozen_string_literal: true

# What the methods that Heddle replaces cost a program, or a thread, that has no scheduler: in plain Ruby, when Heddle
# is loaded, and when the process has had a scheduler before (then the methods are in place). Start it:
# bin/ruby bench/replaced_methods.rb --help
#
# Each side has a process of its own. In each round they measure one after the other, so that a slow moment of the
# machine hits all, and the fastest round counts.

require_relative "support/registry"
require_relative "support/runner"
require_relative "support/environment"
require_relative "replaced_methods/operations"
require "json"
require "optparse"

module Bench
  # Measures all calls and prints the table.
  class ReplacedMethodsBench
    CHILD = File.join(ROOT, "replaced_methods", "child.rb")
    SIDES = %w[plain loaded used].freeze
    # How many times plain Ruby a call may cost.
    GOAL = 1.05

    def initialize(argv)
      @calls = ReplacedMethods::CALLS
      @rounds = 60
      @seconds = 0.003
      @yjit = Runner::YJIT
      parser.parse!(argv)
    end

    def run
      @children = SIDES.to_h { |side| [side, start(side)] }
      @results = @calls.to_h { |name, call| [name, measure(call)] }
      puts @json ? to_json : report(:unicode)
      File.write(@output, report(:markdown)) if @output
    ensure
      @children&.each_value(&:close)
    end

    private

    def parser
      OptionParser.new do |on|
        on.banner = "usage: bin/ruby bench/replaced_methods.rb [options]"
        on.on("--methods PATTERN", Regexp, "only those whose names match") do |pattern|
          @calls = @calls.select { |name, _| name.match?(pattern) }
        end
        on.on("--rounds N", Integer, "rounds (default #{@rounds})") { |n| @rounds = n.clamp(1..) }
        on.on("--seconds S", Float, "that each may take in plain Ruby (default #{@seconds})") { |s| @seconds = s }
        on.on("--[no-]yjit", "with YJIT (default: where this Ruby has it)") { |yjit| @yjit = yjit }
        on.on("--output FILE", "write the report there as well, as Markdown") { |file| @output = file }
        on.on("--json", "print everything as one line of JSON instead") { @json = true }
      end
    end

    # side => microseconds a call, objects a call; nil: this Ruby has no such method
    def measure(call)
      number = (@seconds / [ask("plain", 3, call)["cpu"] / 3, 1e-8].max).clamp(1, 100_000).to_i
      samples = SIDES.to_h { |side| [side, []] }
      (-2...@rounds).each do |round|
        samples.each do |side, list|
          sample = ask(side, number, call)
          list << sample unless round.negative? # the first ones warm up
        end
      end
      samples.transform_values do |list|
        { cost: list.map { |sample| sample["cpu"] }.min * 1e6 / number, objects: list.last["objects"].fdiv(number) }
      end
    end

    def start(side)
      flag = ("--#{"disable-" unless @yjit}yjit" if Runner::YJIT)
      IO.popen([Runner::CLEAN_ENV, RbConfig.ruby, *flag, CHILD, side], "r+")
    end

    def ask(side, number, call)
      child = @children.fetch(side)
      child.puts("#{number} #{call}")
      JSON.parse(child.gets || abort("a child has ended"))
    end

    def ratio(result, side) = result[side][:cost] / result["plain"][:cost]

    def environment
      { "Ruby" => "#{RUBY_DESCRIPTION}, in the children #{@yjit ? "with" : "without"} YJIT",
        **Environment.describe([]).except("Ruby", "peers") }
    end

    def to_json(*)
      cells = @results.flat_map do |name, result|
        SIDES.map { |side| { method: name, side:, ratio: ratio(result, side), **result[side] } }
      end
      JSON.generate(environment:, rounds: @rounds, cells:)
    end

    def report(style)
      [environment.map { |key, value| "#{"#{key}:".ljust(9)} #{value}" }.join("\n"), table(style),
       "Microseconds of CPU per call (user + system), the fastest of #{@rounds} rounds, and objects per call; then\n" \
       "how many times plain Ruby's. No scheduler runs: \"loaded\" is after require \"heddle\", \"used\" after\n" \
       "Heddle.run has been used.",
       *SIDES.drop(1).map { |side| verdict(side) }].join("\n\n") << "\n"
    end

    def verdict(side)
      over = @results.select { |_, result| ratio(result, side) > GOAL }.keys
      "#{side}: #{over.empty? ? "all are within #{GOAL}." : "over #{GOAL}: #{over.join(", ")}."}"
    end

    def table(style)
      require "terminal-table"
      lines = @results.map do |name, result|
        cells = SIDES.map { |side| format("%.2f %d", result[side][:cost], result[side][:objects].round) }
        [name, *cells, *SIDES.drop(1).map { |side| format("%.2f", ratio(result, side)) }]
      end
      table = Terminal::Table.new(headings: ["", *SIDES, *SIDES.drop(1)], rows: lines)
      table.style = { border: style }
      (1..5).each { |column| table.align_column(column, :right) }
      table.to_s
    end
  end
end

Bench::ReplacedMethodsBench.new(ARGV).run
