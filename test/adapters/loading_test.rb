# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/adapters"

# What a program hears that requires an adapter where it cannot work.
class AdapterLoadingTest < HeddleTest
  ADAPTERS = Heddle.const_get(:Adapters)
  ROOT = File.expand_path("../..", __dir__)
  NAMES = Dir.glob("lib/heddle/adapters/*.rb", base: ROOT).map { |file| File.basename(file, ".rb") }

  def test_a_gem_that_is_missing
    (NAMES - ["net_http"]).each do |name| # (Ruby's own)
      outcome = run_command(*ruby_command, "--disable-gems", "-rheddle/adapters/#{name}", "-e", "")

      refute_predicate(outcome, :success?)
      assert_match(%r{heddle/adapters/#{name} needs the gem #{name}: cannot load such file .*LoadError}, outcome.err)
    end
  end

  def test_an_engine_for_jobs_that_is_missing
    %w[sidekiq solid_queue].each do |name|
      outcome = run_command(*ruby_command, "--disable-gems", "-rheddle/#{name}", "-e", "")

      refute_predicate(outcome, :success?)
      assert_match(%r{heddle/#{name} needs the gem #{name}: cannot load such file .*LoadError}, outcome.err)
    end
  end

  def test_a_gem_of_another_version
    error = assert_raises(LoadError) { ADAPTERS.load_library("minitest", ">= 100") }

    assert_match(%r{\Aheddle/adapters/minitest is for minitest >= 100, and this is minitest \d}, error.message)
    assert_nil(ADAPTERS.load_library("minitest", ">= 5", "< 100"))
  end

  def test_a_method_that_the_library_has_not
    changes = Module.new { define_method(:not_there) { nil } }
    error = assert_raises(LoadError) { ADAPTERS.prepend_to("minitest", Minitest::Test, changes) }

    assert_match(%r{\Aheddle/adapters/minitest: Minitest::Test has no method not_there in minitest \d}, error.message)
    refute_includes(Minitest::Test.ancestors, changes)
  end

  def test_each_is_in_the_guides
    guides = %w[clients patches].map { |name| File.read(File.join(ROOT, "guides/#{name}.md")) }
    NAMES.each { |name| guides.each { |text| assert_includes(text, "heddle/adapters/#{name}") } }
  end

  def test_where_it_waits
    refute_predicate(ADAPTERS, :task?)
    Heddle.run do
      assert_predicate(ADAPTERS, :task?)
      refute(Heddle.blocking { ADAPTERS.task? })
      refute(Heddle.offload { ADAPTERS.task? })
    end
  end
end
