# frozen_string_literal: true

module Bench
  # Figures of one cell, and its ratio to the first peer's.
  module Statistics
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

    # Microseconds per operation, one for each round. +figure+ is :cpu or :wall.
    def per_operation(cell, figure)
      cell.samples.map { |sample| sample.fetch(figure.to_s) * 1e6 / sample.fetch("operations") }
    end

    # Median over the rounds of (this cell / that cell): both ran one after the other, so a slow moment hits both.
    def ratio(cell, base)
      return if cell.nil? || base.nil? || cell.samples.empty? || base.samples.empty?

      figure = cell.row.figure
      pairs = per_operation(cell, figure).zip(per_operation(base, figure)).select(&:all?)
      median(pairs.map { |own, other| own / other })
    end

    def summary(cell)
      return { failure: cell.failure, detail: cell.detail } if cell.failure

      main = per_operation(cell, cell.row.figure)
      { median: median(main), spread: spread(main), cpu: median(per_operation(cell, :cpu)),
        wall: median(per_operation(cell, :wall)), objects: objects(cell), rounds: cell.samples.size,
        operations: cell.samples.first.fetch("operations"), result: cell.samples.first["result"] }
    end

    def objects(cell)
      counts = cell.samples.filter_map { |sample| sample["objects"]&.fdiv(sample["operations"]) }
      median(counts) unless counts.empty?
    end
  end
end
