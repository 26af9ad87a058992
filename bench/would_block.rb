# frozen_string_literal: true

# The price of an exception that says "it would block" (Ruby Bug #6154): the raising form of read_nonblock and its kin
# against `exception: false`, in plain Ruby and with Heddle. Start it: bin/ruby bench/would_block.rb --help
#
# Each side has a process of its own; in each round they measure one after the other, so that a slow moment of the
# machine hits all. The ratios are to plain Ruby's `exception: false` in the same round. What the operations return
# and raise is compared.

require_relative "support/registry"
require_relative "support/runner"
require_relative "support/peer_gems"
require_relative "support/statistics"
require_relative "support/environment"
require_relative "would_block/variants"
require "json"
require "optparse"

module Bench
  # Measures all variants and prints the table.
  class WouldBlockBench
    CHILD = File.join(ROOT, "would_block", "child.rb")
    SIDES = %w[plain heddle run].freeze
    HEADINGS = ["", "exception: false", "plain Ruby raises", "Heddle raises", "in Heddle.run", "goal"].freeze

    def initialize(argv)
      @variants = WouldBlock::VARIANTS.values
      @rounds = 15
      @operations = 10_000
      @yjit = Runner::YJIT
      parser.parse!(argv)
    end

    def run
      @results = @variants.to_h { |variant| [variant, measure(variant)] }
      puts @json ? JSON.generate(environment:, results: @results.transform_keys(&:name)) : report(:unicode)
      File.write(@output, report(:markdown)) if @output
    end

    private

    def parser
      OptionParser.new do |on|
        on.banner = "usage: bin/ruby bench/would_block.rb [options]"
        on.on("--variants A,B", Array, "only these: #{WouldBlock::VARIANTS.keys.join(", ")}") do |names|
          @variants = names.map { |name| WouldBlock::VARIANTS[name] || abort("no variant #{name}") }
        end
        on.on("--rounds N", Integer, "rounds (default #{@rounds})") { |n| @rounds = n.clamp(1..) }
        on.on("--operations N", Integer, "in each round (default #{@operations})") { |n| @operations = n.clamp(1..) }
        on.on("--[no-]yjit", "with YJIT (default: where this Ruby has it)") { |yjit| @yjit = yjit }
        on.on("--output FILE", "write the report there as well, as Markdown") { |file| @output = file }
        on.on("--json", "print everything as one line of JSON instead") { @json = true }
      end
    end

    # [side, form] => the samples of all rounds.
    def measure(variant)
      children = SIDES.to_h { |side| [side, start(side, variant)] }
      samples = SIDES.product(%w[silent raising]).to_h { |key| [key.join(" "), []] }
      (-1...@rounds).each do |round|
        samples.each do |key, list|
          side, form = key.split
          sample = ask(children.fetch(side), form)
          list << sample unless round.negative? # the first one warms up
        end
      end
      check(variant, samples)
      samples
    ensure
      children&.each_value(&:close)
    end

    def start(side, variant)
      flag = ("--#{"disable-" unless @yjit}yjit" if Runner::YJIT)
      IO.popen([Runner::CLEAN_ENV, RbConfig.ruby, *flag, CHILD, side, variant.name], "r+")
    end

    def ask(child, form)
      child.puts("#{form} #{@operations}")
      JSON.parse(child.gets || abort("a child has ended"))
    end

    def check(variant, samples)
      %w[silent raising].each do |form|
        results = SIDES.map { |side| samples.fetch("#{side} #{form}").last.fetch("result") }
        abort("#{variant.name}: wrong result: #{results.inspect}") if results.uniq.size > 1
      end
    end

    def microseconds(samples, key)
      samples.fetch(key).map { |sample| sample["cpu"] * 1e6 / sample["operations"] }
    end

    # How many times plain Ruby's `exception: false`: the median over the rounds.
    def ratio(samples, key)
      pairs = microseconds(samples, key).zip(microseconds(samples, "plain silent"))
      Statistics.median(pairs.map { |own, base| own / base })
    end

    def environment
      { "Ruby" => "#{RUBY_DESCRIPTION}, in the children #{"without " unless @yjit}YJIT",
        **Environment.describe([]).except("Ruby", "peers") }
    end

    def report(style)
      lines = @results.map do |variant, samples|
        base = microseconds(samples, "plain silent")
        [variant.title, format("%.2f ±%d%%", Statistics.median(base), Statistics.spread(base) * 100),
         *["plain raising", "heddle raising", "run raising"].map { |key| cell(samples, key) },
         variant.goal && format("%.1f", variant.goal)]
      end
      [environment.map { |key, value| "#{"#{key}:".ljust(9)} #{value}" }.join("\n"), table(lines, style),
       "Microseconds of CPU per call (user + system), median of #{@rounds} rounds of #{@operations}, and in brackets " \
       "how many times plain Ruby's `exception: false` (median of the rounds' ratios).", verdict].join("\n\n") << "\n"
    end

    def cell(samples, key)
      format("%.2f (%.2f)", Statistics.median(microseconds(samples, key)), ratio(samples, key))
    end

    # Heddle's own `exception: false`, the objects, and what is over its goal.
    def verdict
      others = @results.values.flat_map { |samples| [ratio(samples, "heddle silent"), ratio(samples, "run silent")] }
      over = @results.filter_map do |variant, samples|
        variant.name if variant.goal && ratio(samples, "heddle raising") > variant.goal
      end
      ["`exception: false` with Heddle costs #{format("%.2f to %.2f", *others.minmax)} times plain Ruby's.",
       over.empty? ? "All goals are met." : "Over the goal: #{over.join(", ")}."].join(" ")
    end

    def table(lines, style)
      require "terminal-table"
      table = Terminal::Table.new(headings: HEADINGS, rows: lines)
      table.style = { border: style }
      (1...HEADINGS.size).each { |column| table.align_column(column, :right) }
      table.to_s
    end
  end
end

Bench::WouldBlockBench.new(ARGV).run
