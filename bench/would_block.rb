# frozen_string_literal: true

# The price of an exception that says "it would block" (Ruby Bug #6154): the raising form of read_nonblock and its kin
# against `exception: false`, in plain Ruby and with Heddle. Start it: bin/ruby bench/would_block.rb --help
#
# Each side has a process of its own. In each round they measure one after the other, so that a slow moment of the
# machine hits all, and the fastest round counts. What the operations return and raise is compared.

require_relative "support/registry"
require_relative "support/runner"
require_relative "support/environment"
require_relative "would_block/variants"
require "json"
require "optparse"

module Bench
  # Measures all variants and prints the table.
  class WouldBlockBench
    CHILD = File.join(ROOT, "would_block", "child.rb")
    SIDES = %w[plain heddle run].freeze
    # Side and form of each column but the first and the last.
    COLUMNS = { "exception: false" => "plain silent", "raises" => "plain raising",
                "Heddle: false" => "heddle silent", "raises " => "heddle raising",
                "Heddle.run: false" => "run silent", " raises" => "run raising" }.freeze
    BASE = "plain silent"

    def initialize(argv)
      @variants = WouldBlock::VARIANTS.values
      @rounds = 60
      @operations = 2_500
      @yjit = Runner::YJIT
      parser.parse!(argv)
    end

    def run
      @results = @variants.to_h { |variant| [variant, measure(variant)] }
      puts @json ? to_json : report(:unicode)
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

    # "side form" => the samples of all rounds.
    def measure(variant)
      children = SIDES.to_h { |side| [side, start(side, variant)] }
      samples = COLUMNS.values.to_h { |key| [key, []] }
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
      samples.group_by { |key, _| key.split.last }.each_value do |same|
        results = same.map { |_, list| list.last.fetch("result") }
        abort("#{variant.name}: wrong result: #{results.inspect}") if results.uniq.size > 1
      end
    end

    # Microseconds of CPU per call, in the round that was disturbed the least.
    def best(samples, key)
      samples.fetch(key).map { |sample| sample["cpu"] * 1e6 / sample["operations"] }.min
    end

    # How many times plain Ruby's `exception: false`.
    def ratio(samples, key) = best(samples, key) / best(samples, BASE)

    def objects(samples, key)
      sample = samples.fetch(key).last
      (sample["objects"].to_f / sample["operations"]).round(1)
    end

    def environment
      { "Ruby" => "#{RUBY_DESCRIPTION}, in the children #{@yjit ? "with" : "without"} YJIT",
        **Environment.describe([]).except("Ruby", "peers") }
    end

    def to_json(*)
      cells = @results.flat_map do |variant, samples|
        COLUMNS.values.map do |key|
          { variant: variant.name, side: key.split.first, form: key.split.last, best: best(samples, key),
            ratio: ratio(samples, key), objects: objects(samples, key), result: samples.fetch(key).last["result"] }
        end
      end
      JSON.generate(environment:, rounds: @rounds, operations: @operations, cells:)
    end

    def report(style)
      [environment.map { |key, value| "#{"#{key}:".ljust(9)} #{value}" }.join("\n"), table(style),
       "Microseconds of CPU per call (user + system), the fastest of #{@rounds} rounds of #{@operations}; in\n" \
       "brackets how many times plain Ruby's `exception: false`, the first column; then objects per call. The first\n" \
       "two columns are plain Ruby, the next two with require \"heddle\", the last two inside of Heddle.run.",
       verdict].join("\n\n") << "\n"
    end

    def cell(samples, key)
      format("%.2f (%.2f) %d", best(samples, key), ratio(samples, key), objects(samples, key))
    end

    def verdict
      over = @results.filter_map do |variant, samples|
        variant.name if variant.goal && ratio(samples, "heddle raising") > variant.goal
      end
      over.empty? ? "All goals are met." : "Over the goal: #{over.join(", ")}."
    end

    def table(style)
      require "terminal-table"
      lines = @results.map do |variant, samples|
        [variant.title, *COLUMNS.values.map { |key| cell(samples, key) }, variant.goal]
      end
      table = Terminal::Table.new(headings: ["", *COLUMNS.keys.map(&:strip), "goal"], rows: lines)
      table.style = { border: style }
      (1..COLUMNS.size.succ).each { |column| table.align_column(column, :right) }
      table.to_s
    end
  end
end

Bench::WouldBlockBench.new(ARGV).run
