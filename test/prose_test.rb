# frozen_string_literal: true

# bin/test: takes 3 s, 0.9 of a core

require "minitest/autorun"

# Comments and guides are in plain sentences: the forms that readers stumbled over do not come back.
class ProseTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # Each form, and what to write instead.
  FORMS = {
    /[.!?:] \([A-Z][^()]*[.!]\)/ => "a sentence without brackets, or nothing",
    /\b(the ones? (that|whose)|those that|those who)\b/i => "the noun",
    /(\A|[.:] )What (is|has|was|waits|comes)\b/ => "the noun as the subject",
    /\b(is told|are told|tells of|told of)\b/ => "notified, recorded, passed",
    /\b(is|are) to [a-z]/ => "must, will, should",
    /\b(is none|no more\b|there is nothing)/ => "no X exists, X has ended",
    /\b(so many|so long|so much)\b/ => "the number, the time",
    /(\A|[.] )(The same|As above|Nor)\b/ => "the thing itself",
    /\b(strikes?|struck)\b/i => "is raised in"
  }.freeze

  def test_comments_in_c
    assert_plain(Dir.glob("{ext,test,bench}/**/*.{c,h}", base: ROOT)) { |text| text.scan(%r{/\*.*?\*/}m) }
  end

  def test_comments_in_ruby
    code = Dir.glob("{lib,exe,heddle-server/lib}/**/*", base: ROOT).select { |name| ruby?(name) }
    others = Dir.glob("{test,heddle-server/test,bench,tools,examples}/**/*.rb", base: ROOT)
    assert_plain(code + others) { |text| text.scan(/(?:^\s*#(?!\{).*\n)+/) }
  end

  def test_guides
    assert_plain(Dir.glob("{,heddle-server/}{guides/,}*.md", base: ROOT)) do |text|
      text.gsub(/^```.*?^```/m, "\n\n").split(/\n\n+/)
    end
  end

  private

  def assert_plain(names)
    parts = names.to_h { |name| [name, yield(File.read(File.join(ROOT, name), encoding: "UTF-8"))] }
    bad = parts.flat_map { |name, texts| texts.flat_map { |text| forms_in(plain(text)).map { "#{name}: #{_1}" } } }

    assert_empty(bad)
    assert_operator(parts.sum { |_, texts| texts.size }, :>, 100, "the search for sentences does not work")
  end

  def forms_in(text)
    FORMS.flat_map do |form, instead|
      text.to_enum(:scan, form).map { "\"#{$~[0]}#{$~.post_match[0, 20]}\": write #{instead}" }
    end
  end

  # Without the marks of comments and lists, in one line.
  def plain(text) = text.gsub(%r{^\s*(#|//|/?\*)}, " ").delete_suffix("*/").gsub(/\s+/, " ").strip

  def ruby?(name)
    path = File.join(ROOT, name)
    File.file?(path) && (name.end_with?(".rb") || File.open(path, &:readline).include?("ruby"))
  end
end
