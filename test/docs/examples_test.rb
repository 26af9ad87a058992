# frozen_string_literal: true

# bin/test: takes 40 s, 0.4 of a core

require_relative "../test_helper"
require "support/clients"
require "support/servers/mariadb"
require "support/servers/memcached"
require "support/servers/postgres"
require "support/servers/redis"

# Every Ruby example of the README and the guides runs, and prints what the comment behind a line says (`# => value`
# compares the inspected value of the line). A server's usual port stands for one of the tests' own servers.
class DocsExamplesTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)
  DOCUMENTS = Dir.glob("{,heddle-server/}{README,guides/*}.md", base: ROOT).freeze

  SERVERS = { "11211" => TestSupport::Servers::Memcached, "6379" => TestSupport::Servers::Redis,
              "3306" => TestSupport::Servers::Mariadb, "5432" => TestSupport::Servers::Postgres }.freeze
  PORTS = /\b(?:#{SERVERS.keys.join("|")})\b/
  CODE = {} # rubocop:disable Style/MutableConstant

  RUBY = [RbConfig.ruby, "-I#{ROOT}/heddle-server/lib", "-I#{ROOT}/lib", "-rheddle"].freeze
  # A Ruby that has loaded Heddle, and nothing else, forks for each example, in the folder whose path it reads: most
  # examples take less time than a Ruby takes to start. If an example names the frame of a program, it is one.
  FORKER = <<~RUBY
    while (folder = $stdin.gets(chomp: true))
      child = fork do
        Dir.chdir(folder)
        $stdin.reopen(File::NULL)
        [$stdout, $stderr].each { |stream| stream.reopen("output", "a") }
        exec(*ARGV, "example.rb") if File.read("example.rb").include?("<main>")
        load $0 = File.join(folder, "example.rb")
      end
      $stdout.puts(Process.wait2(child).last.to_s)
      $stdout.flush
    end
  RUBY

  def self.forker
    @forker ||= IO.popen([*RUBY, "-e", FORKER, *RUBY], "r+").tap do |forker|
      Minitest.after_run { forker.close }
    end
  end

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

  # The servers and the forker are no leak, so they start before its look at what is there.
  def before_setup
    self.class.forker
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
      File.write(File.join(folder, "example.rb"), checked(code))
      self.class.forker.puts(folder)

      assert_match(/ exit 0$/, self.class.forker.gets, "#{document}:#{line}: #{File.read(File.join(folder, "output"))}")
    end
  end
end
