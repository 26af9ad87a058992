# frozen_string_literal: true

module Heddle
  module Demo
    # Groups of bars in plain text, all to one scale.
    class BarChart
      WIDTH = 50

      # @param groups [Hash{String => Hash{String => Numeric}}] title => { label => value }
      # @param format [Proc] makes the text that stands behind a bar of its value
      def initialize(groups, format:)
        @groups = groups
        @format = format
        @highest = [groups.values.flat_map(&:values).max, 1.0].max
        @title_width = groups.keys.map(&:size).max
        @label_width = groups.values.flat_map(&:keys).map(&:size).max
      end

      # @return [String]
      def to_s
        @groups.map { |title, bars| group(title, bars) }.join("\n\n")
      end

      private

      def group(title, bars)
        bars.each_with_index.map do |(label, value), index|
          margin = (index.zero? ? title : "").rjust(@title_width)
          "#{margin}  #{label.ljust(@label_width)}  #{bar(value)} #{@format.call(value)}"
        end.join("\n")
      end

      # Every bar is seen, however short.
      def bar(value)
        "#" * [(WIDTH * value / @highest).round, 1].max
      end
    end
  end
end
