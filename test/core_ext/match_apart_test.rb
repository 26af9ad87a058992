# frozen_string_literal: true

require_relative "../test_helper"

# Each task has its own $~. The tests for all ways to start tasks are in test/contract/tasks.
class MatchApartTest < HeddleTest
  include TestSupport::Subprocess

  TWO_TASKS = <<~'RUBY'
    tasks = %w[a1 b2].map { |text| Heddle.spawn { text =~ /(\d)/; sleep(0.01); $1 } }
    tasks.map(&:value)
  RUBY

  def matches(env = {})
    outcome = run_ruby("p Heddle.run { #{TWO_TASKS} }", env: { "HEDDLE_SAFE" => nil, **env })

    assert_equal("", outcome.err)
    outcome.out
  end

  def test_each_task_has_its_own
    assert_equal(%(["1", "2"]\n), matches)
  end

  def test_switched_off_tasks_share_them
    [{ "HEDDLE_WITHOUT" => "match_apart" }, { "HEDDLE_SAFE" => "1" }].each do |env|
      assert_equal(%(["2", "2"]\n), matches(env), env)
    end
  end

  def test_the_register_says_so
    outcome = run_ruby("p Heddle.patches.find { |patch| patch.name == :match_apart }.state",
                       env: { "HEDDLE_SAFE" => "1" })

    assert_equal(":switched_off\n", outcome.out, outcome.err)
  end
end
