# frozen_string_literal: true

# bin/test: takes 40 s, 0.4 of a core

require_relative "../test_helper"
require "open3"
require "support/clients"
require "support/servers/mariadb"
require "support/servers/memcached"
require "support/servers/postgres"
require "support/servers/redis"

# Every Ruby example of the README and the guides runs, and prints what the comment behind a line says (`# => value`
# compares the inspected value of the line). A server's usual port stands for one of the tests' own servers.
class DocsExamplesTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)
  DOCUMENTS = (["README.md"] + Dir.glob("guides/*.md", base: ROOT)).freeze

  SERVERS = { "11211" => TestSupport::Servers::Memcached, "6379" => TestSupport::Servers::Redis,
              "3306" => TestSupport::Servers::Mariadb, "5432" => TestSupport::Servers::Postgres }.freeze
  PORTS = /\b(?:#{SERVERS.keys.join("|")})\b/
  CODE = {} # rubocop:disable Style/MutableConstant

  def self.examples(document)
    text = File.read(File.join(ROOT, document))
    text.scan(/^```ruby\n(.*?)^```$/m).map { |(code)| [code, text[0, text.index(code)].count("\n") + 1] }
  end

  DOCUMENTS.each do |document|
    examples(document).each do |code, line|
      name = "test_#{document}_line_#{line}"
      CODE[name] = code
      define_method(name) { run_example(document, code, line) }
    end
  end

  # The servers are no leak, so they start before its look at what is there.
  def before_setup
    code = CODE.fetch(name, "")
    servers = SERVERS.values_at(*code.scan(PORTS))
    @missing = servers.filter_map(&:missing).first
    @missing ||= code.scan(/^require "([^"]+)"/).filter_map { |(library)| TestSupport::Clients.load(library) }.first
    servers.each(&:start) unless @missing
    super
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
    skip(@missing) if @missing
    code = code.gsub(PORTS) { |port| SERVERS.fetch(port).start.port }
    Dir.mktmpdir do |folder|
      script = File.join(folder, "example.rb")
      File.write(script, checked(code))
      output, status = Open3.capture2e(RbConfig.ruby, "-I#{ROOT}/lib", "-rheddle", script, chdir: folder)

      assert_predicate status, :success?, "#{document}:#{line}: #{output}"
    end
  end
end
