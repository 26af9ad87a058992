# frozen_string_literal: true

require_relative "../support/statistics"
require "json"

module Bench
  module Memcached
    # The tables of bench/memcached.rb.
    class Report
      UNTIMED = "none"
      # How many times the CPU of no limit IO#timeout may take in Heddle.
      GOAL = 1.03

      # @param samples [Hash] [peer, variant] => for each round the answers of the child, one for each turn
      # @param facts [Hash] what the figures depend on
      # @param missing [Hash] name of a peer => why it is not there
      # @param ratios [Array<Float>] of Heddle with IO#timeout to Heddle without a limit, in one process
      def initialize(samples, facts, missing, ratios)
        @samples = samples
        @facts = facts
        @missing = missing
        @ratio = Statistics.median(ratios) unless ratios.empty?
        @peers, @variants = samples.keys.transpose.map(&:uniq)
      end

      def to_json(*)
        cells = @samples.keys.map do |peer, variant|
          { peer: peer.name, variant: variant.name, cpu: median(peer, variant, "cpu"),
            real: median(peer, variant, "real"), cpu_ratio: ratio(peer, variant, "cpu"),
            real_ratio: ratio(peer, variant, "real"), objects: objects(peer, variant) }
        end
        JSON.generate(facts: @facts, missing: @missing, timed_ratio: @ratio, cells:)
      end

      # @param style [Symbol] terminal-table's border
      def to_s(style)
        [@facts.map { |key, value| "#{"#{key}:".ljust(10)} #{value}" }.join("\n"),
         "CPU seconds (user + system) of the client:", table(style, "cpu"),
         "Real seconds:", table(style, "real"), legend, *notes, verdict].compact.join("\n\n") << "\n"
      end

      private

      def table(style, figure)
        require "terminal-table"
        headings = ["", "2009", *@peers.map(&:name), *("objects" if figure == "cpu")]
        lines = @variants.map do |variant|
          [variant.title, year2009(variant, figure), *@peers.map { |peer| cell(peer, variant, figure) },
           *(object_cell(variant) if figure == "cpu")]
        end
        table = Terminal::Table.new(headings:, rows: lines)
        table.style = { border: style }
        (1...headings.size).each { |column| table.align_column(column, :right) }
        table.to_s
      end

      def year2009(variant, figure)
        seconds = variant.year2009&.fetch(figure == "cpu" ? 0 : 1) or return "-"
        base = VARIANTS.fetch(UNTIMED).year2009.fetch(figure == "cpu" ? 0 : 1)
        format("%.2f (%.2f)", seconds, seconds / base)
      end

      def cell(peer, variant, figure)
        spread = Statistics.spread(totals(peer, variant, figure)) * 100
        text = format("%.2f ±%.0f%%", median(peer, variant, figure), spread)
        ratio = ratio(peer, variant, figure)
        ratio ? "#{text} (#{format("%.2f", ratio)})" : text
      end

      def object_cell(variant) = @peers.map { |peer| format("%.1f", objects(peer, variant)) }.join(" / ")

      # Seconds of each round.
      def totals(peer, variant, figure)
        @samples.fetch([peer, variant]).map { |turns| turns.sum { |turn| turn.fetch(figure) } }
      end

      def median(...) = Statistics.median(totals(...))

      # How many times the variant without a limit, turn by turn: the two of a turn ran one after the other.
      def ratio(peer, variant, figure)
        bases = @samples.find { |(one, other), _| one == peer && other.name == UNTIMED }&.last or return
        pairs = @samples.fetch([peer, variant]).flatten.zip(bases.flatten)
        Statistics.median(pairs.map { |own, base| own.fetch(figure) / base.fetch(figure) })
      end

      def objects(peer, variant)
        turns = @samples.fetch([peer, variant]).flatten
        turns.sum { |turn| turn.fetch("objects") }.fdiv(2 * turns.sum { |turn| turn.fetch("right") })
      end

      def legend
        rounds = @samples.first.last.size
        <<~TEXT.chomp
          Median of #{rounds} rounds, half their range, and in brackets how many times the variant without a limit of
          the same column (median of the turns' ratios). 2009 is memcache-client on the Ruby and the machine of its day;
          a timer thread (SystemTimer) in place of Timeout took 14.36 CPU and 14.86 real seconds then. Objects are per
          operation: #{@peers.map(&:name).join(" / ")}.
        TEXT
      end

      def notes
        lines = @missing.map { |name, reason| "- #{name}: #{reason}" }
        lines.empty? ? [] : [lines.join("\n")]
      end

      # Heddle's timed row over its untimed row.
      def verdict
        return unless @ratio

        format("In one process, by turns, heddle takes %.3f times the CPU with IO#timeout (goal: at most %.2f): %s.",
               @ratio, GOAL, @ratio <= GOAL ? "met" : "missed")
      end
    end
  end
end
