# frozen_string_literal: true

require_relative "statistics"

module Bench
  # Whether rows keep their goals. Where the rounds of a row differ too much, this machine cannot tell.
  class Goals
    # By which share the median of the rounds may be above the fastest one. The goals leave about twice that room.
    SPREAD = 0.2

    Judged = Struct.new(:cell, :ratio, :goal, :spread) do
      # A single round does not show by how much the rounds differ.
      def clear? = spread && spread <= SPREAD

      def over? = ratio > goal
      def name = "#{cell.row.name}, #{cell.peer.name}"
    end

    # @param cells [Array<Runner::Cell>]
    # @yield [cell] the cell that the ratio of this one is to
    def initialize(cells)
      @judged = cells.filter_map do |cell|
        goal = cell.row.goal&.fetch(cell.peer.name[/\A[^-]+/], nil)
        ratio = Statistics.ratio(cell, base = yield(cell)) if goal
        Judged.new(cell, ratio, goal, spread(cell, base)) if ratio
      end
    end

    # @return [Symbol] :over as soon as one row is; :unknown if this machine cannot tell; or :met
    def verdict
      return :over if over.any?

      unclear.any? ? :unknown : :met
    end

    def to_s
      return "All goals are met." if verdict == :met

      { "Over the goal (ratio; goal)" => over, "Cannot tell on this machine (spread of the rounds)" => unclear }
        .filter_map { |title, rows| "#{title}: #{rows.join(", ")}." if rows.any? }.join("\n")
    end

    private

    def over
      @judged.select { |one| one.clear? && one.over? }
        .map { |one| format("%s (%.3f; %.2f)", one.name, one.ratio, one.goal) }
    end

    def unclear
      @judged.reject(&:clear?)
        .map { |one| "#{one.name} (#{one.spread ? "#{(one.spread * 100).round}%" : "one round"})" }
    end

    # @return [Float, nil] the larger one of both; nil if there is only one round
    def spread(cell, base)
      all = [cell, base].map { |one| Statistics.values(one, cell.row.figure) }
      all.map { |values| Statistics.median(values).fdiv(values.min) - 1 }.max if all.all? { |values| values.size > 1 }
    end
  end
end
