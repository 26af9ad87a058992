# frozen_string_literal: true

# bin/test: takes 8 s, 0.6 of a core

require "test_helper"
require_relative "bench_case"
require_relative "../../bench/support/session"
require_relative "../../bench/support/publication"

# bin/bench, tiny: what it prints, and what it writes into the README.
class PublishTest < BenchCase
  PUBLISH = File.join(ROOT, "bench", "publish.rb")
  TINY = %w[--rows queue,mutex,echo --scale 0.005 --rounds 2 --no-install --peers].freeze

  def test_the_report_says_what_it_depends_on
    outcome = run_command(RbConfig.ruby, PUBLISH, "--print", *TINY, "heddle-epoll,threads")

    assert_predicate(outcome, :success?, outcome.err)
    assert_match(/^Heddle: +#{Regexp.escape(Heddle::VERSION)}/, outcome.out)
    assert_match(/^load: +[\d.]+ before, [\d.]+ after/, outcome.out)
    assert_match(/^made: +\d{4}-\d\d-\d\d, in \d+ s/, outcome.out)
    assert_match(%r{^made with: +bin/bench --rows queue,mutex,echo}, outcome.out)
    assert_match(/median of 2 rounds/, outcome.out)
  end

  def test_no_round_begins_that_there_is_no_time_for
    out = run_command(RbConfig.ruby, PUBLISH, "--print", *TINY, "heddle-epoll", "--seconds", "0").out

    assert_match(/median of 1 rounds/, out)
  end

  def test_the_table_of_the_readme
    readme = write_readme("Before.\n\n<!-- bin/bench -->\nold\n<!-- end -->\n\nAfter.\n")
    table = readme_table("heddle-epoll,threads,c")

    assert(table.write(readme))
    text = File.read(readme)

    assert_match(/\ABefore\.\n\n<!-- bin.bench -->\n\| Ruby #{RUBY_VERSION} \| Heddle, epoll \| threads \|\n/, text)
    assert_match(/^\| a `Mutex` that 50 tasks want \| [\d.]+ \| [\d.]+ \|$/, text)
    assert_match(/^The table has 3 of 3 lines\./, text)
    assert_includes(text.tr("\n", " "), "times the CPU time of a bare loop in C.")
    assert_operator(text.lines.reject { |line| line.start_with?("|") }.map(&:size).max, :<=, 121)
    assert_match(/\n<!-- end -->\n\nAfter\.\n\z/, text)
  end

  def test_the_figures_of_a_newer_ruby_stay
    place = "<!-- bin/bench -->\n| Ruby 99.1.0 | Heddle |\n<!-- end -->\n"
    readme = write_readme(place)

    refute(readme_table("heddle-epoll").write(readme))
    assert_equal(place, File.read(readme))
  end

  def test_figures_without_yjit_have_a_file_of_their_own
    readme = write_readme(place = "<!-- bin/bench -->\nold\n<!-- end -->\n")
    said = Bench::Publication.new(report("heddle-epoll"), yjit: false, results: File.dirname(readme), readme:).write
    path = File.join(File.dirname(readme), "operations-#{RUBY_VERSION[/\A\d+\.\d+/]}-no_yjit.md")

    assert_equal("written: #{path}", said.first)
    assert_match(/^Heddle: /, File.read(path))
    assert_equal(place, File.read(readme))
  end

  # What --all measures, which takes two hours.
  def test_all_reports_can_be_made
    require PUBLISH

    Bench::Publish::FURTHER.each do |name, options|
      refute_empty(Bench::Options.new(options).rows, name)
    end
    Bench::Publish::PROGRAMS.each do |name|
      outcome = run_command(RbConfig.ruby, File.join(ROOT, "bench", "#{name}.rb"), "--help")

      assert_includes(outcome.out, "--output FILE", outcome.err)
    end
  end

  def test_the_readme_has_a_place_for_it
    assert_match(Bench::ReadmeTable::PLACE, File.read(Bench::ReadmeTable::README))
  end

  private

  def readme_table(peers) = Bench::ReadmeTable.new(report(peers))

  def report(peers) = Bench::Session.new(Bench::Options.new([*TINY, peers])).run

  def write_readme(text) = File.join(tempdir, "README.md").tap { |path| File.write(path, text) }
end
