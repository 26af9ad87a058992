# frozen_string_literal: true

require_relative "../test_helper"
require "open3"

# Every Ruby example of the README and the guides runs, and prints what the comment behind a line says (`# => value`
# compares the inspected value of the line).
class DocsExamplesTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)
  DOCUMENTS = (["README.md"] + Dir.glob("guides/*.md", base: ROOT)).freeze

  def self.examples(document)
    text = File.read(File.join(ROOT, document))
    text.scan(/^```ruby\n(.*?)^```$/m).map { |(code)| [code, text[0, text.index(code)].count("\n") + 1] }
  end

  DOCUMENTS.each do |document|
    examples(document).each do |code, line|
      define_method("test_#{document}_line_#{line}") { run_example(document, code, line) }
    end
  end

  def test_there_are_examples
    refute_empty self.class.examples("README.md")
  end

  private

  # `expression # => value` becomes a check.
  def checked(code)
    code.gsub(/^(\s*)([^#\n]+?)\s+# => (.+)$/) do |line|
      actual = Regexp.last_match(2)
      expected = Regexp.last_match(3)
      "[(#{actual}), (#{expected})].then { |a, b| " \
        "a.inspect == b.inspect or raise %q(#{line.strip}) + ': ' + a.inspect }"
    end
  end

  def run_example(document, code, line)
    Dir.mktmpdir do |folder|
      script = File.join(folder, "example.rb")
      File.write(script, checked(code))
      output, status = Open3.capture2e(RbConfig.ruby, "-I#{ROOT}/lib", "-rheddle", script, chdir: folder)

      assert_predicate status, :success?, "#{document}:#{line}: #{output}"
    end
  end
end
