# frozen_string_literal: true

require "json"
require_relative "goals"

module Bench
  # The tables that people read, and the JSON for everything else.
  class Report
    def initialize(rows, runner, environment)
      @rows = rows.reject { |row| runner.missing.key?(row.name) }
      @runner = runner
      @environment = environment
    end

    attr_reader :runner, :environment, :rows

    # @return [Symbol] :over if a row has failed, is missing or is over its goal; :unknown if this machine cannot tell;
    #   or :met
    def verdict
      return :over if @runner.missing.any? || @runner.cells.values.any?(&:failure)

      goals(@rows).verdict
    end

    def to_json(*)
      cells = @runner.cells.values.map do |cell|
        ratios = %i[cpu wall].to_h { |figure| [:"#{figure}_ratio", Statistics.ratio(cell, base(cell), figure)] }
        { group: cell.row.group.name, row: cell.row.name, peer: cell.peer.name, unit: cell.row.unit,
          figure: cell.row.figure, ratio: Statistics.ratio(cell, base(cell)), **ratios,
          **Statistics.summary(cell) }
      end
      JSON.generate(environment: @environment, missing: @runner.missing, cells:)
    end

    # For the terminal; with markdown for a file.
    def to_s(markdown: false)
      style = markdown ? :markdown : :unicode
      groups = @rows.group_by(&:group).flat_map do |group, rows|
        [("#{group.title}:" unless group.name == "operations"), *tables(group, rows, style), *notes(rows),
         *conclusion(group, rows)]
      end
      missing = @runner.missing.map { |name, reason| "- #{name}: #{reason}" }.join("\n")
      [heading, *groups, *(missing unless missing.empty?)].compact.join("\n\n") << "\n"
    end

    private

    def heading
      width = @environment.keys.map(&:size).max + 1
      @environment.map { |key, value| "#{"#{key}:".ljust(width)} #{value}" }.join("\n")
    end

    def tables(group, rows, style)
      main = (group.figures || [nil]).map { |figure| main_table(group, rows, figure, style) }
      timed = rows.select { |row| Statistics::TIMES.include?(row.figure) }
      [*main, legend(group), *(cost_table(group, timed, style) if timed.any?)]
    end

    def legend(group)
      turns = @runner.turns(group)
      made = @runner.cells.values.select { |cell| cell.row.group == group }.map { |cell| cell.rounds.size }.max.to_i
      rounds = "#{made} rounds#{" of #{turns} turns" if turns > 1}"
      sample, ratio = group.best ? ["the fastest", "fastest rounds"] : ["median", "median of each turn's"]
      base = group.own ? "the same peer's #{group.own}" : "#{@runner.peers(group).first&.name}'s"
      text = "Microseconds (or bytes), CPU time (user + system) or wall time as the row says: #{sample} of " \
             "#{rounds}, half the range, and in brackets how many times #{base} (#{ratio}). #{group.note}".strip
      text.gsub(/(.{1,118})(?: +|\z)/, "\\1\n").chomp
    end

    # The row's own figure, or the figure that is asked for.
    def main_table(group, rows, figure, style)
      peers = @runner.peers(group)
      lines = rows.flat_map { |row| row.lines(figure) }.map do |line|
        [line.title, "#{line.figure} / #{line.unit}", *(line.row.beside&.fetch(line.figure) || "-" if group.beside),
         *peers.map { |peer| main_cell(cell(line.row, peer), line.figure) }]
      end
      table(["", "", *group.beside, *peers.map(&:name)], lines, style)
    end

    def main_cell(cell, figure)
      return "" unless cell
      return cell.failure if cell.failure

      figures = Statistics.figures(cell, figure)
      text = "#{number(figures[cell.row.group.best ? :best : :median])} ±#{(figures[:spread] * 100).round}%"
      return text if base(cell).equal?(cell)

      "#{text} (#{format("%.2f", Statistics.ratio(cell, base(cell), figure) || Float::NAN)})"
    end

    # CPU, wall and objects of every cell.
    def cost_table(group, rows, style)
      peers = @runner.peers(group)
      lines = rows.map { |row| [row.name, *peers.map { |peer| cost_cell(cell(row, peer)) }] }
      table(["CPU us / wall us / objects", *peers.map(&:name)], lines, style)
    end

    def cost_cell(cell)
      return "" unless cell
      return cell.failure if cell.failure

      figures = Statistics.summary(cell)
      objects = figures[:objects]&.then { |count| format("%.1f", count) }
      [number(figures[:cpu]), number(figures[:wall]), objects].compact.join(" / ")
    end

    def notes(rows)
      lines = @runner.cells.values.select { |cell| cell.failure && rows.include?(cell.row) }.map do |cell|
        "- #{cell.row.name}, #{cell.peer.name}: #{cell.failure}#{" (#{cell.detail})" if cell.detail}"
      end
      lines.empty? ? [] : [lines.join("\n")]
    end

    def conclusion(group, rows)
      return [goals(rows).to_s] if rows.any?(&:goal)

      group.own ? [] : [behind(group, rows), floor(group, rows)].compact
    end

    def goals(rows) = Goals.new(@runner.cells.values.select { |cell| rows.include?(cell.row) }) { |cell| base(cell) }

    # Where the first peer is not the fastest.
    def behind(group, rows)
      first, *others = @runner.peers(group)
      behind = rows.filter_map do |row|
        faster = others.reject { |peer| peer.command || peer.heddle? }.select do |peer|
          (Statistics.ratio(cell(row, peer), cell(row, first)) || 1) < 1
        end
        "#{row.name} (#{faster.map(&:name).join(", ")})" unless faster.empty?
      end
      "#{first.name} is behind on: #{behind.join(", ")}." unless behind.empty?
    end

    # The first peer's distance to the bare C loop.
    def floor(group, rows)
      first = @runner.peers(group).first
      c = @runner.peers(group).find(&:command) or return
      floor = rows.filter_map { |row| Statistics.ratio(cell(row, first), cell(row, c)) }.first or return
      "#{first.name} takes #{format("%.2f", floor)} times the CPU of the bare C loop for TCP echo."
    end

    def cell(row, peer) = @runner.cells[[row.name, peer.name]]

    # The cell that its ratio is to.
    def base(cell)
      peer = cell.row.group.own ? cell.peer : @runner.peers(cell.row.group).first
      @runner.cells[[cell.row.base || cell.row.name, peer.name]]
    end

    def number(value)
      format(%w[%.2f %.1f %.0f][[10, 10_000].count { |limit| value >= limit }], value)
    end

    def table(headings, lines, style)
      table = Terminal::Table.new(headings:, rows: lines)
      table.style = { border: style }
      (1...headings.size).each { |column| table.align_column(column, :right) }
      table.to_s
    end
  end
end
