# frozen_string_literal: true

# bin/test: takes 40 s, 1 core

require_relative "test_helper"
require "fileutils"
require "support/clients"
require "support/serve_program"

# Both gems, built as for a release, install from their files where no other gem is, and `heddle serve` answers.
class GemTest < HeddleTest
  time_limit 1500
  NEEDED = %w[protocol-http1 protocol-http2 protocol-rack].freeze

  # Gems that heddle-server needs, and the gems that these need. bin/test has installed their files.
  def files_of(name, found = {})
    spec = Gem::Specification.find_by_name(name)
    return found if found.key?(name) || spec.default_gem?

    found[name] = spec.cache_file
    spec.runtime_dependencies.each { |dependency| files_of(dependency.name, found) }
    found
  end

  def setup
    super
    missing = NEEDED.filter_map { |gem| TestSupport::Clients.load(gem, gem.tr("-", "/")) }
    skip(missing.first) if missing.any?
    @files = NEEDED.reduce({}) { |found, name| files_of(name, found) }.values
    skip("the files of the gems are not here") unless @files.all? { |file| File.file?(file) }
    @folder = tempdir
    @home = tempdir
    @env = { "GEM_HOME" => @home, "GEM_PATH" => @home, "RUBYLIB" => nil, "RUBYOPT" => nil, "MAKEFLAGS" => "-j2" }
    FileUtils.cp(@files, @folder)
  end

  def teardown
    @program&.close
    super
  end

  def install(name, *options)
    outcome = run_command(RbConfig.ruby, "-S", "gem", "install", "--local", "--no-document", name, *options,
                          chdir: @folder, env: @env, timeout: 1200)

    assert_predicate(outcome, :success?, outcome.out + outcome.err)
  end

  def heddle = [RbConfig.ruby, File.join(@home, "bin/heddle")]

  def test_both_install_and_serve
    outcome = run_command(File.join(ROOT, "bin/rake"), "gem[#{@folder}]", env: { "HEDDLE_RUBY" => RbConfig.ruby })

    assert_predicate(outcome, :success?, outcome.out + outcome.err)
    install("heddle", "--", "--with-optflags=-O0") # compiles in half of the time
    outcome = run_command(*heddle, "serve", env: @env)

    assert_equal(1, outcome.status.exitstatus)
    assert_match(/\Aheddle serve: .* gem heddle-server: .*\n\z/, outcome.err)
    install("heddle-server")
    serve
  end

  private

  # The program that takes its place by USR2 finds its gems anew.
  def serve
    File.write(File.join(@folder, "config.ru"), 'run ->(_) { [200, { "content-type" => "text/plain" }, ["here"]] }')
    env = { **@env, "PWD" => @folder }
    @program = TestSupport::ServeProgram.new(*heddle, "serve", "-p", "0", chdir: @folder, env:)

    assert_equal("here", @program.get.body)
    @program.signal(:USR2)
    @program.wait_for(/listening on/, 2)

    assert_equal("here", @program.get.body)
    assert_includes(File.read("/proc/#{@program.pid}/cmdline"), "bin/heddle")
    refute_includes(File.read("/proc/#{@program.pid}/cmdline").split("\0"), "-I")
    @program.signal(:TERM)

    assert_predicate(@program.wait, :success?, @program.said.join)
  end
end
