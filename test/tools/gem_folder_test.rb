# frozen_string_literal: true

require_relative "../test_helper"

# The gems that the tests use, in a folder that two runs may want to fill at once.
class GemFolderTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)

  # Stands for a Ruby: notes what it installs, and takes a moment for it. One gem cannot be had.
  INSTALLER = <<~SH
    #!/bin/sh
    echo run >> "$INSTALLED"
    code=0
    mkdir -p "$SPECIFICATIONS"
    for name; do
      case $name in -*|gem|install|/*) continue ;; "$REFUSED") code=1; continue ;; esac
      echo "$name" >> "$INSTALLED"
      sleep 0.01
      case $name in *:"<"*) version=0.1 ;; *:*) version=${name##*>} ;; *) version=1 ;; esac
      touch "$SPECIFICATIONS/${name%%:*}-$version.gemspec"
    done
    exit $code
  SH
  SCRIPT = <<~RUBY
    require "./tools/console"
    require "./tools/setup/gem_folder"
    require "./tools/rubies/ruby_info"
    info = Tools::RubyInfo.new(exe: ARGV.first, version: "4.0.0", abi: "4.0.0", platform: "none", mtime: 0)
    puts Tools::GemFolder.new(info, console: Tools::Console.new(out: $stderr)).install_for_tests
  RUBY

  def setup
    super
    @folder = tempdir
    @ruby = File.join(@folder, "ruby")
    File.write(@ruby, INSTALLER, perm: 0o755)
  end

  def test_two_runs_install_each_gem_once
    counts = Array.new(2) { Thread.new { install.size } }.map(&:value)

    assert_equal([0, installed.size - 1], counts.sort)
    assert_equal(installed.uniq, installed)
    assert_includes(installed, "pg")
  end

  # All with one program, but for the gem that cannot be had.
  def test_what_cannot_be_had_keeps_no_other_away
    said = install("REFUSED" => "pg")

    assert_equal(["run"] * 2, installed.grep("run"))
    assert_match(/^pg: not for Ruby 4.0.0/, said.grep_v(/: installed$/).join("|"))
    assert_includes(installed, "webmock")
  end

  private

  # The gems that were installed, and a word for each start of the program.
  def installed = File.readlines(File.join(@folder, "installed"), chomp: true)

  # @return [Array<String>] what this run says
  def install(environment = {})
    environment = { "XDG_CACHE_HOME" => @folder, "INSTALLED" => File.join(@folder, "installed"),
                    "SPECIFICATIONS" => specifications, **environment }
    outcome = run_command(RbConfig.ruby, "-e", SCRIPT, @ruby, env: environment, chdir: ROOT)

    assert_predicate(outcome, :success?, outcome.err)
    outcome.out.lines(chomp: true)
  end

  def specifications
    key = run_command(RbConfig.ruby, "-r./tools/rubies/ruby_info", "-e", <<~RUBY, @ruby, chdir: ROOT).out
      print Tools::RubyInfo.new(exe: ARGV.first, version: "4.0.0", abi: "4.0.0", platform: "none", mtime: 0).key
    RUBY
    File.join(@folder, "heddle/gems", key, "ruby/4.0.0/specifications")
  end
end
