# frozen_string_literal: true

module Bench
  # The table of the README, made of a report, between two marks.
  class ReadmeTable
    README = File.expand_path("../README.md", ROOT)
    PLACE = %r{(?<=<!-- bin/bench -->\n).*?(?=<!-- end -->)}m
    WIDTH = 120
    # [row, figure] => what the README calls it. Microseconds unless it says otherwise.
    LINES = {
      %i[spawn cpu] => "start and end a task",
      %i[sleepers cpu] => "10,000 tasks that sleep, each",
      %i[queue cpu] => "`Queue`, there and back, one thread",
      %i[queue_threads cpu] => "`Queue`, there and back, two threads",
      %i[mutex cpu] => "a `Mutex` that 50 tasks want",
      %i[pipe cpu] => "64 KiB through a pipe",
      %i[socketpair cpu] => "64 bytes, there and back, socket pair",
      %i[select cpu] => "`IO.select` of two pipes",
      %i[echo cpu] => "TCP echo, 20 connections",
      %i[http cpu] => "HTTP server, a request of wrk",
      %i[tls_echo cpu] => "TLS echo, 20 connections",
      %i[redis cpu] => "Redis, `SET` and `GET`",
      %i[postgres cpu] => "PostgreSQL, a query",
      %i[process wall] => "run a process (wall time)",
      %i[idle p99] => "ping one of 10,000 idle connections (99 %, wall time)",
      %i[idle bytes] => "memory of an idle connection, bytes"
    }.freeze
    NAMES = { "heddle-uring" => "Heddle, io_uring", "heddle-epoll" => "Heddle, epoll",
              "uringmachine" => "UringMachine" }.freeze

    def initialize(report)
      @runner = report.runner
      @facts = report.environment
      @peers = report.runner.cells.values.map(&:peer).uniq.reject(&:command)
      @lines = LINES.select { |(row, _), _| cell(row, @peers.first) }
    end

    # Puts the table into the README, unless that has the figures of a newer Ruby.
    # @return [Boolean]
    def write(path = README)
      text = File.read(path)
      place = text[PLACE] or raise "#{path} has no place for the table"

      there = place[/^\| Ruby (\d[\d.]*)/, 1]
      return false if there && Gem::Version.new(there) > Gem::Version.new(RUBY_VERSION)

      File.write(path, text.sub(PLACE) { to_s })
      true
    end

    # @return [String] Markdown
    def to_s
      heading = ["Ruby #{RUBY_VERSION}", *@peers.map { |peer| NAMES.fetch(peer.name, peer.name) }]
      rows = @lines.map { |(row, figure), title| [title, *@peers.map { |peer| entry(row.to_s, figure, peer) }] }
      table = [heading, ["---"] * heading.size, *rows].map { |cells| "| #{cells.join(" | ")} |\n" }.join
      "#{table}\n#{words.gsub(/(.{1,#{WIDTH - 1}})(?: +|\z)/, "\\1\n")}"
    end

    private

    def cell(row, peer) = @runner.cells[[row.to_s, peer&.name]]

    def entry(row, figure, peer)
      own = cell(row, peer) or return ""
      return own.failure if own.failure
      return number(Statistics.figures(own, figure)[:median]) if peer == @peers.first

      ratio = Statistics.ratio(own, cell(row, @peers.first), figure)
      ratio ? format("%.2f", ratio) : ""
    end

    def number(value)
      return format("%.2f", value) if value < 10

      value < 10_000 ? format("%.1f", value) : value.round.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")
    end

    def words
      rounds = @runner.cells.values.map { |one| one.rounds.size }
      ["The table has #{@lines.size} of #{all_lines.size} lines. `bin/bench` measured them on #{@facts["made"]}, on " \
       "#{@facts["machine"]} with #{@facts["kernel"]}. A figure is CPU time unless its line says something else, and " \
       "the median of #{rounds.minmax.uniq.join(" to ")} rounds.", behind, floor, broken,
       "The versions are #{@facts["peers"].gsub(/heddle\S* \(\w+\), |threads, |, c \(epoll\)/, "")}."].compact.join(" ")
    end

    def all_lines = @runner.cells.values.map(&:row).uniq.flat_map(&:lines)

    # How often another library is faster, and where by most.
    def behind
      ratios = all_lines.to_h { |line| [line, best_ratio(line)] }.compact.select { |_, ratio| ratio < 1 }
      text = "On #{ratios.size} of the #{all_lines.size} lines threads or another library were faster than " \
             "#{NAMES.fetch(@peers.first.name)}"
      line, ratio = ratios.min_by { |_, one| one }
      "#{text}.#{format(" The largest difference, %.2f times the time, was in \"%s\".", ratio, name(line)) if line}"
    end

    def name(line) = [line.row.title, line.title.delete_prefix("the same, ")].uniq.join(", ")

    def best_ratio(line)
      first = cell(line.row.name, @peers.first)
      @peers.reject(&:heddle?).filter_map do |peer|
        Statistics.ratio(cell(line.row.name, peer), first, line.figure)
      end.min
    end

    def floor
      program = @runner.cells.values.find { |one| one.peer.command } or return
      ratio = Statistics.ratio(cell(program.row.name, @peers.first), program) or return
      "For TCP echo, Heddle took #{format("%.2f", ratio)} times the CPU time of a bare loop in C."
    end

    def broken
      limit = @runner.cells.values.find { |one| one.failure == "hangs" }&.detail
      "\"Hangs\" means: #{limit}. \"Crashes\" means that the program raised an error or died." if limit
    end
  end
end
