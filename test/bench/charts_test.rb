# frozen_string_literal: true

require "test_helper"
require_relative "bench_case"
require_relative "../../bench/charts"
require_relative "../../bench/round_trip"

# The charts that are drawn of reports, and the shares of the CPU time.
class ChartsTest < BenchCase
  REPORT = <<~MARKDOWN
    Ruby: ruby 9.9.9

    |           |             | heddle-uring | threads         | c           |
    |-----------|-------------|--------------|-----------------|-------------|
    | a <queue> |  cpu / task |     2.50 ±5% | 10.00 ±5% (4.00) |            |
    | a pipe    | wall / byte |     4.00 ±5% | hangs            | 1.00 (0.25) |

    | CPU us / wall us / objects | heddle-uring | threads |
    |----------------------------|--------------|---------|
    | a <queue>                  | 1 / 2 / 3    | 4 / 5 / 6 |
  MARKDOWN
  FIGURES = { "a <queue>" => { "heddle-uring" => "2.50", "threads" => "10.00" },
              "a pipe" => { "heddle-uring" => "4.00", "threads" => "hangs", "c" => "1.00" } }.freeze

  def test_the_lines_of_a_report
    assert_equal(FIGURES, Bench::Charts.lines(REPORT, [/./]))
    assert_equal(FIGURES.slice("a pipe"), Bench::Charts.lines(REPORT, ["a pipe"]))
  end

  # The longest bar of each line has the whole width.
  def test_bars
    svg = Bench::Chart.new("Title & more", FIGURES).to_s
    bars = svg.scan(/<rect x="\d+" y="\d+" width="([\d.]+)"/).flatten.map(&:to_f)

    assert_equal([0.25, 1.0, 1.0, 0.0, 0.25], bars.map { |width| width / bars.max })
    assert_includes(svg, "a &lt;queue&gt;")
    assert_includes(svg, "Title &amp; more")
    refute_match(/&(?!amp;|lt;|gt;|quot;|#39;)/, svg)
  end

  def test_all_published_charts_have_their_lines
    Bench::Charts::DRAWN.each do |name, (_, wanted)|
      Dir[File.join(Bench::Charts::RESULTS, "#{name}-4.0.md")].each do |report|
        lines = Bench::Charts.lines(File.read(report), wanted)

        assert_equal(wanted, lines.keys) if wanted.grep(Regexp).empty?

        refute_empty(lines)
        assert_path_exists(report.sub(/md\z/, "svg"))
      end
    end
  end

  def test_shares_of_the_kernel_ruby_and_heddle
    samples = [["[kernel.kallsyms]", 50.0], ["heddle_native.so", 10.0], ["ruby", 25.0], ["libc.so.6", 14.0]]

    assert_equal([50.0, 39.0, 10.0], Bench::RoundTrip.shares(samples))
  end
end
