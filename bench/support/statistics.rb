# frozen_string_literal: true

module Bench
  # Figures of one cell, and its ratio to another.
  module Statistics
    TIMES = %i[cpu wall].freeze

    module_function

    def median(numbers)
      sorted = numbers.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # Half the distance of the extremes, as a share of the median.
    def spread(numbers)
      middle = median(numbers)
      middle.zero? ? 0.0 : (numbers.max - numbers.min) / 2.0 / middle
    end

    # One value for each round: microseconds per operation, or what the workload has found.
    def values(cell, figure)
      return cell.rounds.map { |turns| median(turns.map { |turn| value(turn, figure) }) } unless TIMES.include?(figure)

      cell.rounds.map { |turns| sum(turns, figure) * 1e6 / sum(turns, :operations) }
    end

    # Of one turn: seconds per operation, or what the workload has found.
    def value(turn, figure)
      return turn.fetch("found").fetch(figure.to_s) unless TIMES.include?(figure)

      turn.fetch(figure.to_s) / turn.fetch("operations")
    end

    # How many times the base, or nil. Median over the turns of (this cell / that cell): both ran one after the other,
    # so a slow moment hits both. Where the fastest round counts it is theirs.
    def ratio(cell, base, figure = cell&.row&.figure)
      return if [cell, base].any? { |one| one.nil? || one.failure || one.turns.empty? }
      return values(cell, figure).min.fdiv(values(base, figure).min) if cell.row.group.best

      pairs = [cell, base].map { |one| one.turns.map { |turn| value(turn, figure) } }
      median(pairs.first.zip(pairs.last).select(&:all?).map { |own, other| own.fdiv(other) })
    end

    # Median, half the range and fastest round of the row's figure; CPU, wall and objects per operation.
    def summary(cell)
      return { failure: cell.failure, detail: cell.detail } if cell.failure

      figures(cell, cell.row.figure).merge(
        cpu: middle(cell, :cpu), wall: middle(cell, :wall), objects: objects(cell), rounds: cell.rounds.size,
        turns: cell.rounds.first.size, operations: sum(cell.rounds.first, :operations),
        found: cell.row.also.keys.to_h { |figure| [figure, figures(cell, figure)] }, result: cell.turns.last["result"]
      )
    end

    # What counts in a table: the median, or the fastest round where the group says so.
    def figures(cell, figure)
      all = values(cell, figure)
      { median: median(all), spread: spread(all), best: all.min }
    end

    def middle(cell, figure)
      all = values(cell, figure)
      cell.row.group.best ? all.min : median(all)
    end

    def objects(cell)
      return unless cell.turns.first["objects"] # a program that is no Ruby

      median(cell.rounds.map { |turns| sum(turns, :objects).fdiv(sum(turns, :operations)) })
    end

    def sum(turns, figure) = turns.sum { |turn| turn.fetch(figure.to_s) }
  end
end
