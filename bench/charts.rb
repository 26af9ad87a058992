# frozen_string_literal: true

# Draws the reports of bench/results/: bin/ruby bench/charts.rb

require_relative "support/chart"

module Bench
  # Makes an SVG file of each report that has a chart.
  module Charts
    RESULTS = File.join(__dir__, "results")
    # A report => the title of its chart, and the lines of it that are drawn.
    DRAWN = {
      "operations" => ["Microseconds for each (shorter is better)",
                       ["spawn and exit", "10,000 sleepers", "Queue ping-pong, one thread", "contended Mutex, 50 tasks",
                        "socket pair ping-pong, 64 bytes", "open and read a file of 16 KiB",
                        "TCP echo, 20 connections, 512 bytes", "accept, connect, close",
                        "Redis, SET and GET, redis-client, 10 connections"]],
      "main_job" => ["1,000 GETs at once: microseconds for each (shorter is better)", [/./]],
      "tail" => ["After which time 99 % are answered, microseconds (shorter is better)", [/\A(echo|HTTP)/]],
      "scale" => ["Idle connections, and processes: microseconds (shorter is better)", [/\Aping|\Around/]],
      "round_trip" => ["Where the CPU time goes, per cent", [/./]]
    }.freeze
    CELL = /\A[\d.]+|\A[a-z ]+\z/

    module_function

    # @return [Array<String>] the files that were written
    def run
      DRAWN.flat_map do |name, (title, wanted)|
        Dir[File.join(RESULTS, "#{name}-*.*.md")].grep_v(/no_yjit/).map do |report|
          path = report.sub(/\.md\z/, ".svg")
          File.write(path, Chart.new(title, lines(File.read(report), wanted)).to_s)
          path
        end
      end
    end

    # The first tables of a report, which say what each peer took.
    # @return [Hash{String=>Hash{String=>String}}]
    def lines(report, wanted)
      tables = report.split("\n\n").select { |part| part.start_with?("|") && !part.start_with?("| CPU us") }
      tables.map { |table| table.lines.map { |line| line.strip[1..-2].split("|", -1).map(&:strip) } }
        .flat_map { |heading, _rule, *rows| rows.map { |row| [row.first, row, heading] } }
        .select { |title, *| wanted.any? { |one| one === title } }.uniq(&:first) # rubocop:disable Style/CaseEquality
        .to_h { |title, row, heading| [title, figures(heading, row)] }
    end

    # @return [Hash{String=>String}] peer => figure; without the peers that do not run the row
    def figures(heading, row)
      heading.zip(row).drop(2).to_h.transform_values { |cell| cell[CELL] }.compact
    end
  end
end

Bench::Charts.run.each { |path| puts("written: #{path}") } if $PROGRAM_NAME == __FILE__
