# frozen_string_literal: true

require "json"

module Bench
  # The tables that people read, and the JSON for everything else.
  class Report
    def initialize(options, runner)
      @rows = options.rows
      @peers = options.peers
      @rounds = options.rounds
      @runner = runner
      @environment = Environment.describe(runner.cells.values)
    end

    def to_json(*)
      cells = @runner.cells.values.map do |cell|
        { row: cell.row.name, peer: cell.peer.name, unit: cell.row.unit, figure: cell.row.figure,
          ratio: Statistics.ratio(cell, base(cell.row)), **Statistics.summary(cell) }
      end
      JSON.generate(environment: @environment, rounds: @rounds, missing: @runner.missing, cells:)
    end

    # For the terminal; with markdown for a file.
    def to_s(markdown: false)
      style = markdown ? :markdown : :unicode
      [heading, main_table(style), legend, cost_table(style), *notes, *verdict].compact.join("\n\n") << "\n"
    end

    private

    def heading = @environment.map { |key, value| "#{"#{key}:".ljust(9)} #{value}" }.join("\n")

    def legend
      "Microseconds per operation, CPU time (user + system) or wall time as the row says: median of #{@rounds} " \
        "rounds, half the range, and in brackets how many times #{@peers.first.name}'s (median of the rounds' ratios)."
    end

    def main_table(style)
      lines = @rows.map do |row|
        [row.title, "#{row.figure} / #{row.unit}", *shown_peers.map { |peer| main_cell(cell(row, peer)) }]
      end
      table(["", "", *shown_peers.map(&:name)], lines, style)
    end

    def main_cell(cell)
      return "" unless cell
      return cell.failure if cell.failure

      figures = Statistics.summary(cell)
      text = "#{number(figures[:median])} ±#{(figures[:spread] * 100).round}%"
      return text if cell.peer == @peers.first

      "#{text} (#{format("%.2f", Statistics.ratio(cell, base(cell.row)) || Float::NAN)})"
    end

    # CPU, wall and objects of every cell.
    def cost_table(style)
      lines = @rows.map do |row|
        [row.name, *shown_peers.map { |peer| cost_cell(cell(row, peer)) }]
      end
      table(["CPU us / wall us / objects", *shown_peers.map(&:name)], lines, style)
    end

    def cost_cell(cell)
      return "" unless cell
      return cell.failure if cell.failure

      figures = Statistics.summary(cell)
      objects = figures[:objects]&.then { |count| format("%.1f", count) }
      [number(figures[:cpu]), number(figures[:wall]), objects].compact.join(" / ")
    end

    def notes
      missing = @runner.missing.map { |name, reason| "#{name}: #{reason}" }
      failures = @runner.cells.values.select(&:failure).map do |cell|
        "#{cell.row.name}, #{cell.peer.name}: #{cell.failure}#{" (#{cell.detail})" if cell.detail}"
      end
      [missing, failures].reject(&:empty?).map { |lines| lines.map { |line| "- #{line}" }.join("\n") }
    end

    # Where the first peer is not the fastest, and its distance to the bare C loop.
    def verdict
      behind = @rows.filter_map do |row|
        faster = shown_peers.drop(1).reject(&:command).select do |peer|
          (Statistics.ratio(cell(row, peer), base(row)) || 1) < 1
        end
        "#{row.name} (#{faster.map(&:name).join(", ")})" unless faster.empty?
      end
      c = shown_peers.find(&:command)
      floor = @rows.filter_map { |row| Statistics.ratio(base(row), cell(row, c)) if c && cell(row, c) }.first
      name = @peers.first.name
      [("#{name} is behind on: #{behind.join(", ")}." unless behind.empty?),
       ("#{name} takes #{format("%.2f", floor)} times the CPU of the bare C loop for TCP echo." if floor)].compact
    end

    def shown_peers = @peers.reject { |peer| @runner.missing.key?(peer.name) }

    def cell(row, peer) = @runner.cells[[row.name, peer.name]]

    def base(row) = cell(row, @peers.first)

    def number(microseconds)
      format(microseconds < 10 ? "%.2f" : "%.1f", microseconds)
    end

    def table(headings, lines, style)
      table = Terminal::Table.new(headings:, rows: lines)
      table.style = { border: style }
      (1...headings.size).each { |column| table.align_column(column, :right) }
      table.to_s
    end
  end
end
