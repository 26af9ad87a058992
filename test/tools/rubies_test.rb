# frozen_string_literal: true

require_relative "../test_helper"

# Which Ruby a command takes if it is given a version.
class RubiesTest < HeddleTest
  SCRIPT = <<~RUBY
    require "./tools/support"
    require "./tools/console"
    require "./tools/rubies/rubies"
    info = Tools::Rubies.built_or_on_path(ARGV.first) || Tools::Rubies.named(ARGV.first)
    puts info.exe
  RUBY

  def test_one_on_path_if_none_of_its_series_was_built
    outcome = find(RUBY_VERSION[/\d+\.\d+/])

    assert_equal(File.realpath(RbConfig.ruby), File.realpath(outcome.out.chomp), outcome.err)
  end

  def test_the_message_says_how_to_get_one
    outcome = find("9.9")

    refute_predicate(outcome.status, :success?)
    assert_includes(outcome.err, "bin/setup --ruby 9.9 builds one")
    refute_includes(find("2.9").err, "bin/setup") # it is too old for Heddle
  end

  private

  def find(series)
    path = [File.dirname(RbConfig.ruby), ENV.fetch("PATH")].join(":")
    run_command(RbConfig.ruby, "-e", SCRIPT, series, chdir: File.expand_path("../..", __dir__),
                                                     env: { "PATH" => path, "XDG_CACHE_HOME" => tempdir })
  end
end
