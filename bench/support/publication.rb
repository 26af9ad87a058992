# frozen_string_literal: true

require_relative "readme_table"

module Bench
  # The files into which bin/bench writes a report.
  class Publication
    RESULTS = File.join(ROOT, "results")

    # @return [String] the path of the report of that name
    def self.path(name, results = RESULTS) = File.join(results, "#{name}-#{RUBY_VERSION[/\A\d+\.\d+/]}.md")

    # @param report [Report]
    # @param yjit [Boolean] whether it was measured with YJIT; the README shows only such figures
    def initialize(report, yjit:, results: RESULTS, readme: ReadmeTable::README)
      @report = report
      @yjit = yjit
      path = Publication.path("operations", results)
      @path = yjit ? path : path.sub(/\.md\z/, "-no_yjit.md")
      @readme = readme
    end

    # @return [Array<String>] what was done
    def write
      File.write(@path, @report.to_s(markdown: true))
      ["written: #{@path}", table]
    end

    private

    def table
      return "The README has the figures with YJIT." unless @yjit
      return "The README has the figures of a newer Ruby." unless ReadmeTable.new(@report).write(@readme)

      "written: the table of #{@readme}"
    end
  end
end
