# frozen_string_literal: true

require_relative "../test_helper"

# The gems that the tests use, in a folder that two runs may want to fill at once.
class GemFolderTest < HeddleTest
  ROOT = File.expand_path("../..", __dir__)

  # Stands for a Ruby: notes what it installs, and takes a moment for it.
  INSTALLER = <<~SH
    #!/bin/sh
    for name; do :; done # the last argument
    echo "$name" >> "$INSTALLED"
    sleep 0.01
    case $name in *:"<"*) version=0.1 ;; *:*) version=${name##*>} ;; *) version=1 ;; esac
    mkdir -p "$SPECIFICATIONS" && touch "$SPECIFICATIONS/${name%%:*}-$version.gemspec"
  SH
  SCRIPT = <<~RUBY
    require "./tools/console"
    require "./tools/gem_folder"
    require "./tools/ruby_info"
    info = Tools::RubyInfo.new(exe: ARGV.first, version: "4.0.0", abi: "4.0.0", platform: "none", mtime: 0)
    puts Tools::GemFolder.new(info, console: Tools::Console.new(out: $stderr)).install_for_tests.size
  RUBY

  def test_two_runs_install_each_gem_once
    folder = tempdir
    ruby = File.join(folder, "ruby")
    File.write(ruby, INSTALLER, perm: 0o755)
    counts = Array.new(2) { Thread.new { install(folder, ruby) } }.map(&:value)
    installed = File.readlines(File.join(folder, "installed"), chomp: true)

    assert_equal([0, installed.size], counts.sort)
    assert_equal(installed.uniq, installed)
    assert_includes(installed, "pg")
  end

  private

  # @return [Integer] how many gems this run has installed
  def install(folder, ruby)
    environment = { "XDG_CACHE_HOME" => folder, "INSTALLED" => File.join(folder, "installed"),
                    "SPECIFICATIONS" => specifications(folder, ruby) }
    outcome = run_command(RbConfig.ruby, "-e", SCRIPT, ruby, env: environment, chdir: ROOT)

    assert_predicate(outcome, :success?, outcome.err)
    Integer(outcome.out)
  end

  def specifications(folder, ruby)
    key = run_command(RbConfig.ruby, "-r./tools/ruby_info", "-e", <<~RUBY, ruby, chdir: ROOT).out
      print Tools::RubyInfo.new(exe: ARGV.first, version: "4.0.0", abi: "4.0.0", platform: "none", mtime: 0).key
    RUBY
    File.join(folder, "heddle/gems", key, "ruby/4.0.0/specifications")
  end
end
