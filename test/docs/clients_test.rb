# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../../tools/client_table"

# The table of guides/clients.md: `bin/rake clients` makes it of what the tests of clients measure.
class ClientsGuideTest < HeddleTest
  GUIDE = File.read(Tools::ClientTable::GUIDE)
  TABLE = GUIDE[Tools::ClientTable::PLACE].lines.map { |line| line.split("|").map(&:strip)[1..-2] }

  def test_it_is_made_by_the_command
    assert_equal(Tools::ClientTable::HEADER, TABLE.first)
    TABLE.drop(2).each do |client, _version, verdict, *figures|
      assert_match(/\A(fully|partly|no)/, verdict, client)
      refute_includes(figures, "", client)
    end
  end

  # A test that names its client in one place, and the table.
  def test_all_clients_are_in_it
    titles = Dir[File.join(__dir__, "../{clients,adapters}/**/*_test.rb")].flat_map do |path|
      File.read(path).scan(/def (?:title|name_in_table) = "([^"#]+)"$/).flatten
    end

    assert_empty(titles.reject { |title| TABLE.any? { |row| row.first.start_with?(title) } })
  end

  def test_what_it_says_of_figures
    lines = [{ title: "two", took: 0.2, hold: 0.3, blocked: 0.01, cancel: "raises Two::Error" },
             { title: "one", version: "1.0", took: 3.0, hold: 0.3, blocked: 0.2, timeout: nil, close: "answered" },
             { title: "two", version: "2.0", took: 0.3, hold: 0.1, blocked: 0.01, holds: "it connects" }]
    table = Tools::ClientTable.new(lines.map { |line| JSON.generate(line) }).to_s.lines.drop(2)

    assert_equal("| one | 1.0 | no | 3.00 s | 0.30 s | it has none |  | answered |\n", table.first)
    assert_equal("| two | 2.0 | partly, not while it connects | 0.30 s | 0.30 s |  | raises `Two::Error` |  |\n",
                 table.last)
  end
end
