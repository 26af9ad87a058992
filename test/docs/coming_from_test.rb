# frozen_string_literal: true

require_relative "../test_helper"

# guides/coming_from.md: each form of Heddle in its tables stands in a Ruby example of the page. DocsExamplesTest runs
# these examples.
class ComingFromGuideTest < HeddleTest
  GUIDE = File.read(File.expand_path("../../guides/coming_from.md", __dir__))
  CODE = GUIDE.scan(/^```ruby\n(.*?)^```$/m).join.gsub(/(?:^|\s)# .*/, "")
  # The tables with a form elsewhere on the left and a form of Heddle beside it.
  TABLES = GUIDE.scan(/(?:^\|.*\n)+/)
    .map { |table| table.lines.map { |line| line.split(/(?<!\\)\|/).drop(1).map(&:strip) } }
    .select { |header,| header[1].match?(/\A(With )?Heddle\z/) }
  ROWS = TABLES.flat_map { |table| table.drop(2) }
  ANY = { "{ ... }" => '(?:\{ \S.*\}|do\b(?! \|).*)', "..." => ".+?" }.freeze

  def test_each_form_is_in_an_example
    assert_empty(ROWS.flat_map { |row| forms(row) }.uniq.reject { |form| CODE.match?(pattern(form)) })
  end

  def test_each_row_has_a_form
    assert_empty(ROWS.select { |row| forms(row).empty? })
    assert_operator(TABLES.size, :>, 7, "the search for tables does not work")
    assert_operator(ROWS.size, :>, 80)
  end

  def test_which_code_has_a_form
    { "task.wait(5)" => "task.wait(5).status", "Heddle.spawn { ... }" => "one = Heddle.spawn { work }",
      "Heddle.run { ... }" => "Heddle.run do", "any(-> { ... }, -> { ... })" => "any(-> { 1 }, -> { raise })" }
      .each { |form, code| assert_match(pattern(form), code) }
    { "task.wait(5)" => "task.wait", "Heddle.spawn { ... }" => "Heddle.spawn", "Heddle.run { ... }" => "Heddle.run { }",
      "Heddle.scope { |scope| ... }" => "Heddle.scope { scope }", "Queue" => "SizedQueue" }
      .each { |form, code| refute_match(pattern(form), code) }
  end

  private

  # @return [Array<String>] those of Heddle; where Heddle has the same, those of both columns
  def forms((elsewhere, here))
    (here.start_with?("the same") ? elsewhere + here : here).scan(/`([^`]+)`/).flatten.map { |form| form.tr("\\", "") }
  end

  # "..." stands for any code, and braces may be written as do.
  def pattern(form)
    parts = form.split(/(\{ \.\.\. \}|\.\.\.)/)
    source = parts.map { |part| ANY.fetch(part) { Regexp.escape(part) } }.join
    Regexp.new("(?<![\\w:])#{source}(?!\\w)")
  end
end
