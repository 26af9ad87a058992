# frozen_string_literal: true

require_relative "../test_helper"

# A link from one document to another leads to a file that is there, and to a title that is in it.
class LinksTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)
  DOCUMENTS = Dir.glob("{*,examples/*,guides/*,heddle-server/*,heddle-server/guides/*}.md", base: ROOT).freeze

  def test_links_lead_somewhere
    broken = DOCUMENTS.flat_map do |document|
      links(document).reject { |path, title| there?(path, title) }
        .map { |link| "#{document}: #{link.compact.join("#")}" }
    end

    assert_empty(broken)
    refute_empty(DOCUMENTS.flat_map { |document| links(document) })
  end

  def test_each_document_is_linked_from_the_readme
    linked = links("README.md").map { |path,| path }
    expected = DOCUMENTS.map { |document| File.join(ROOT, document) } - [File.join(ROOT, "README.md")]

    assert_empty(expected - linked)
  end

  def test_each_example_is_listed
    programs = Dir.glob(%w[examples/*.rb examples/*/config.ru], base: ROOT)
    listed = links("examples/README.md").map { |path,| path.delete_prefix("#{ROOT}/") }

    assert_equal(programs.sort, listed.grep(/\.r[bu]\z/).sort)
    assert_equal(programs.map { |path| path.sub(%r{(/config)?\.r[bu]\z}, "_test.rb") }.sort,
                 Dir.glob("examples/*_test.rb", base: File.join(ROOT, "test")).sort)
  end

  private

  def text(path) = File.read(path, encoding: "UTF-8").gsub(/^```.*?^```$/m, "")

  # @return [Array<Array(String, String)>] the path and the title, or nil, of each link that leads to no other machine
  def links(document)
    folder = File.dirname(File.join(ROOT, document))
    text(File.join(ROOT, document)).scan(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/).reject { |path,| path.include?("://") }
      .map { |path, title| [path.empty? ? File.join(ROOT, document) : File.expand_path(path, folder), title] }
  end

  def there?(path, title)
    return File.exist?(path) unless title

    text(path).scan(/^#+ (.+)$/).any? { |(line)| line.downcase.gsub(/[^\w -]/, "").tr(" ", "-") == title }
  end
end
