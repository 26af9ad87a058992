# frozen_string_literal: true

require "cgi"

module Bench
  # Horizontal bars, as an SVG file: a group for each line of a table, with a bar for each peer. Each line has
  # a scale of its own, because their units differ. A bar that is much longer than the first one of its line is cut off.
  class Chart
    WIDTH = 820
    LABEL = 330
    NAME = 110
    BAR = 13
    GAP = 12
    # Room at the right for the figure.
    FIGURE = 90
    COLOURS = { "heddle-uring" => "#1a7f5a", "heddle-epoll" => "#5bb98c", "heddle" => "#1a7f5a",
                "heddle-sliced" => "#1a7f5a", "kernel" => "#8c8c8c", "Ruby" => "#b5473c",
                "Heddle" => "#1a7f5a" }.freeze
    OTHER = "#9db2c8"
    # How many times as long as the first bar a bar can be.
    LONGEST = 4

    # @param title [String]
    # @param lines [Hash{String=>Hash{String=>String}}] the text of a line => peer => figure, or why it has no figure
    def initialize(title, lines)
      @title = title
      @lines = lines
    end

    # @return [String] the text of an SVG file
    def to_s
      y = 34
      body = @lines.map do |text, figures|
        top = y
        y += (figures.size * BAR) + GAP
        group(text, figures, top)
      end
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" width="#{WIDTH}" height="#{y}" font-family="sans-serif" font-size="11">
        <rect width="100%" height="100%" fill="white"/>
        <text x="8" y="20" font-size="14" font-weight="bold">#{CGI.escapeHTML(@title)}</text>
        #{body.join("\n")}
        </svg>
      SVG
    end

    private

    def group(text, figures, top)
      values = figures.values.map(&:to_f)
      largest = [values.max, LONGEST * values.first].min
      bars = figures.each_with_index.map { |(peer, figure), index| bar(peer, figure, largest, top + (index * BAR)) }
      [%(<text x="8" y="#{top + 10}">#{CGI.escapeHTML(text)}</text>), *bars].join("\n")
    end

    def bar(peer, figure, largest, y)
      width = largest.zero? ? 0 : (WIDTH - LABEL - NAME - FIGURE) * [figure.to_f / largest, 1.0].min
      x = LABEL + NAME
      <<~SVG.chomp
        <text x="#{x - 6}" y="#{y + 10}" text-anchor="end">#{CGI.escapeHTML(peer)}</text>
        <rect x="#{x}" y="#{y + 1}" width="#{width.round(1)}" height="#{BAR - 2}" fill="#{COLOURS.fetch(peer, OTHER)}"/>
        <text x="#{(x + width + 4).round(1)}" y="#{y + 10}">#{CGI.escapeHTML(figure)}</text>
      SVG
    end
  end
end
