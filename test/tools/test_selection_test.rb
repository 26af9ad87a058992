# frozen_string_literal: true

require_relative "../test_helper"
require_relative "../../tools/support"
require_relative "../../tools/testing/test_selection"

# Which test files bin/test runs on which Ruby.
class TestSelectionTest < HeddleTest
  RUBIES = %w[3.3 3.4 4.0].freeze

  def files(*paths, **options)
    selection = Tools::TestSelection.new(paths, **options)
    RUBIES.map { |ruby| selection.of(ruby, RUBIES) }
  end

  def test_the_core_runs_on_each_ruby_and_everything_on_the_first
    first, *others = files

    assert_equal(Dir.glob("{heddle-server/,}test/**/*_test.rb", base: Tools::ROOT).sort, first)
    assert_equal(others.first, others.last)
    folders = others.first.map { |file| file[%r{\Atest/[^/]+}] }.uniq

    assert_equal(%w[test/contract test/core_ext test/faults test/fuzz test/hooks test/ractors_test.rb], folders)
    assert_equal(first & others.first, others.first)
  end

  def test_everything_on_each_ruby
    first, *others = files(everything: true)
    once = first - others.first

    assert_equal(others.first, others.last)
    assert_includes(others.first, "test/clients/databases/pg_test.rb")
    assert_empty(once.grep_v(%r{\Atest/(bench|cli/demo|docs|sig|tools|style_test|signals_test)\b})
      .grep_v(%r{\Aheddle-server/test/(gem|server/public_api)_test}))
    assert_equal(others, [Tools::TestSelection.new([]).with_everything.of("3.4", RUBIES)] * 2)
  end

  # A test that was named is meant.
  def test_files_that_are_named_run_on_each_ruby
    assert_equal([["test/clients/databases/pg_test.rb"]] * 3, files("test/clients/databases/pg_test.rb"))
    assert_equal([["test/style_test.rb"], [], []], files("test/style_test.rb"))
    assert_raises(Tools::Problem) { files("test/support") }
  end

  def test_the_core_needs_no_gem_but_the_gemfiles
    selection = Tools::TestSelection.new([])

    assert_equal([true, false, false], RUBIES.map { |ruby| selection.products?(ruby, RUBIES) })
    assert_operator(selection.left_out, :>, 50)
    refute(Tools::TestSelection.new(["test/tools"]).products?("3.3", RUBIES))
  end
end
