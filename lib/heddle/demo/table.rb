# frozen_string_literal: true

module Heddle
  module Demo
    # A table in plain text: the first column to the left, the others to the right.
    class Table
      GAP = "  "

      # @param rows [Array<Array<String>>] the cells, the head included; a short row is filled up
      def initialize(rows)
        @rows = rows
        count = rows.map(&:size).max
        @widths = Array.new(count) { |index| rows.map { |row| row[index].to_s.size }.max }
      end

      # @return [String]
      def to_s
        @rows.map { |row| line(row) }.join("\n")
      end

      private

      def line(row)
        @widths.each_with_index.map do |width, index|
          cell = row[index].to_s
          index.zero? ? cell.ljust(width) : cell.rjust(width)
        end.join(GAP).rstrip
      end
    end
  end
end
