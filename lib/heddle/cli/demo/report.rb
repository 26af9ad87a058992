# frozen_string_literal: true

require "etc"
require_relative "result"

module Heddle
  module CLI
    class Demo
      # Shows the result to people: a table and what it means, a bar chart, the slow server, the errors.
      class Report
        # How far NeverBlock was ahead of the best threads in 2008, in per cent, by delay.
        ADVANTAGE_2008 = { 0 => 124.76, 10 => 149.63, 50 => 174.18, 100 => 208.96, 500 => 148.43 }.freeze

        TITLES = { blocking: "blocking", threads: "a thread each", heddle: "Heddle, a fiber each" }.freeze
        BARS = { blocking: "blocking", threads: "threads", heddle: "Heddle" }.freeze
        BAR_WIDTH = 50

        # A table in plain text: the first column to the left, the others to the right.
        # @return [String]
        def self.table(rows)
          widths = rows.transpose.map { |cells| cells.map(&:size).max }
          rows.map do |row|
            row.zip(widths).each_with_index.map { |cell, index| cell[0].send(index.zero? ? :ljust : :rjust, cell[1]) }
              .join("  ").rstrip
          end.join("\n")
        end

        # Draws groups of bars, all to one scale: title => { label => value }. Every bar is visible, however short.
        # @yield [value] the text behind a bar
        # @return [String]
        def self.bars(groups)
          highest = [*groups.values.flat_map(&:values), 1.0].max
          title_width, label_width = [groups.keys, groups.values.flat_map(&:keys)].map { |all| all.map(&:size).max }
          groups.map do |title, bars|
            bars.each_with_index.map do |(label, value), index|
              bar = "#" * [(BAR_WIDTH * value / highest).round, 1].max
              "#{(index.zero? ? title : "").rjust(title_width)}  #{label.ljust(label_width)}  #{bar} #{yield value}"
            end.join("\n")
          end.join("\n\n")
        end

        # @param result [Result]
        def initialize(result)
          @result = result
          @settings = result.settings
          @columns = result.columns.transform_keys { |delay_ms| delay_ms ? "#{delay_ms} ms" : @settings.url }
          @advantages2008 = result.columns.keys.map { |delay_ms| ADVANTAGE_2008[delay_ms] }
        end

        # @return [String]
        def to_s
          [head, Report.table(rows), explanation, marks, chart, slow, errors].compact.join("\n\n")
        end

        private

        def head
          uname = Etc.uname
          <<~TEXT.chomp
            #{thousands(@settings.requests)} requests, each a Net::HTTP.start on a new connection, each answer checked
            Ruby #{RUBY_VERSION} #{Child.yjit? ? "with" : "without"} YJIT, Heddle on #{@result.backend || "nothing"}, \
            #{Etc.nprocessors} cores, #{uname[:sysname]} #{uname[:release]}
          TEXT
        end

        def rows
          rows = [["requests per second", *@columns.keys], *TITLES.map { |kind, title| [title, *rates(kind)] }]
          if @settings.processes > 1
            rows << ["Heddle, #{@settings.processes} processes", *rates(:heddle_processes)]
            rows << ["  gain", *advantages(:heddle_processes, :heddle)]
          end
          rows << ["Heddle over threads", *advantages(:heddle, :threads)]
          return rows if @advantages2008.none?

          rows << ["NeverBlock over threads, 2008", *@advantages2008.map { |value| value ? percent(value) : "" }]
        end

        # A star marks a rate that was measured on a sample.
        def rates(kind)
          @columns.values.map { |kinds| thousands(kinds[kind].rate) + (kinds[kind].extrapolated? ? "*" : "") }
        end

        def advantages(one, other)
          @columns.values.map { |kinds| percent(((kinds[one].rate / kinds[other].rate) - 1) * 100) }
        end

        def explanation
          ["Right answers per second#{", by the time that the server takes for each answer" unless @settings.url}.",
           "Blocking makes one request after another; a thread each, or a fiber each, makes all of them at once.",
           ("The processes share the requests; gain: what they add to one process." if @settings.processes > 1),
           "Heddle over threads: how many per cent more answers Heddle got in a second than a thread each.",
           ("NeverBlock, a library of fibers: what it measured against threads in 2008." if @advantages2008.any?)]
            .compact.join("\n")
        end

        def marks
          lines = @columns.flat_map do |title, kinds|
            { "threads" => kinds[:threads].limit, "fibers" => kinds[:heddle].limit }.compact.map do |what, limit|
              "! #{title}: the system carried only #{thousands(limit)} #{what} at once; the others waited"
            end
          end
          sampled = @columns.values.any? { |kinds| kinds[:blocking].extrapolated? }
          lines.unshift("* extrapolated from the requests that fit in a second") if sampled
          lines.join("\n") unless lines.empty?
        end

        def chart
          groups = @columns.transform_values { |kinds| BARS.to_h { |kind, label| [label, kinds[kind].rate] } }
          Report.bars(groups) { |rate| thousands(rate) }
        end

        def slow
          measurement, delay_ms, blocking_seconds = @result.slow&.values
          return unless measurement

          format("%d requests to a server that takes %d s for each: Heddle %.2f s, blocking %.1f s (extrapolated)",
                 measurement.asked, delay_ms / 1000, measurement.seconds, blocking_seconds)
        end

        def errors
          return "Errors: none, all #{thousands(@result.requests)} answers were right" if @result.errors.zero?

          kinds = Measurement.sum_errors(@result.measurements.map(&:errors))
          ["Errors: #{thousands(@result.errors)} of #{thousands(@result.requests)} requests went wrong",
           *kinds.map { |kind, count| "  #{thousands(count)} x #{kind}" }].join("\n")
        end

        def percent(value) = value.finite? ? format("%+.1f %%", value) : "-"

        def thousands(number) = number.round.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
      end
    end
  end
end
