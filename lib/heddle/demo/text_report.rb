# frozen_string_literal: true

require_relative "bar_chart"
require_relative "system"
require_relative "table"

module Heddle
  module Demo
    # The result for people: a table, a bar chart, the slow server, the errors.
    class TextReport
      # How far NeverBlock was ahead of the best threads in 2008, in per cent, by delay.
      ADVANTAGE_2008 = { 0 => 124.76, 10 => 149.63, 50 => 174.18, 100 => 208.96, 500 => 148.43 }.freeze

      # Marks what was measured on a sample.
      MARK = "*"

      # @param result [Result]
      def initialize(result)
        @result = result
        @settings = result.settings
        @columns = result.columns
      end

      # @return [String]
      def to_s
        [head, table, marks, chart, slow, errors].compact.join("\n\n")
      end

      private

      def head
        <<~TEXT.chomp
          #{thousands(@settings.requests)} requests, each a Net::HTTP.start on a new connection, each answer checked
          #{System.ruby}, Heddle on #{@result.backend || "nothing"}, #{System.machine}
        TEXT
      end

      def table
        Table.new([titles, *rates, *processes, advantage, advantage_then].compact).to_s
      end

      def titles
        ["requests per second", *@columns.map { |column| title(column) }]
      end

      def title(column)
        column.delay_ms ? "#{column.delay_ms} ms" : @settings.url
      end

      def rates
        { "blocking" => :blocking, "a thread each" => :threads, "Heddle, a fiber each" => :heddle }
          .map { |title, style| [title, *cells(style)] }
      end

      def cells(style)
        @columns.map do |column|
          measurement = column.public_send(style)
          thousands(measurement.rate) + (measurement.extrapolated? ? MARK : "")
        end
      end

      def processes
        return [] if @settings.processes == 1

        [["Heddle, #{@settings.processes} processes", *cells(:processes)],
         ["  gain", *@columns.map { |column| percent(column.gain) }]]
      end

      def advantage
        ["Heddle over threads", *@columns.map { |column| percent(column.advantage) }]
      end

      def advantage_then
        known = @columns.map { |column| ADVANTAGE_2008[column.delay_ms] }
        return unless known.any?

        ["NeverBlock over threads, 2008", *known.map { |value| value ? percent(value) : "" }]
      end

      def marks
        lines = @columns.flat_map { |column| limits(column) }
        if @columns.any? { |column| column.blocking.extrapolated? }
          lines.unshift("#{MARK} extrapolated from those that fit in a second")
        end
        lines.join("\n") unless lines.empty?
      end

      def limits(column)
        { "threads" => column.threads, "fibers" => column.heddle }.filter_map do |what, measurement|
          limit = measurement.limit
          "! #{title(column)}: the system carried only #{thousands(limit)} #{what} at once; the others waited" if limit
        end
      end

      def chart
        groups = @columns.to_h do |column|
          [title(column), { "blocking" => column.blocking.rate, "threads" => column.threads.rate,
                            "Heddle" => column.heddle.rate }]
        end
        BarChart.new(groups, format: method(:thousands)).to_s
      end

      def slow
        slow = @result.slow
        return unless slow

        format("%d requests to a server that takes %d s for each: Heddle %.2f s, blocking %.1f s (extrapolated)",
               slow.requests, slow.delay_ms / 1000, slow.measurement.seconds, slow.blocking_seconds)
      end

      def errors
        return "Errors: none, all #{thousands(@result.requests)} answers were right" if @result.right?

        kinds = @result.measurements.map(&:errors).reduce { |sum, errors| sum.merge(errors) { |_, a, b| a + b } }
        lines = kinds.map { |kind, count| "  #{thousands(count)} x #{kind}" }
        title = "Errors: #{thousands(@result.errors)} of #{thousands(@result.requests)} requests went wrong"
        [title, *lines].join("\n")
      end

      def percent(value)
        value.finite? ? format("%+.1f %%", value) : "-"
      end

      def thousands(number)
        number.round.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
      end
    end
  end
end
