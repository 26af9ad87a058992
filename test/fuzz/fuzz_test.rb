# frozen_string_literal: true

require_relative "../test_helper"

# A few seconds of the random operations of test/fuzz/run.rb, with a new seed each time. Longer, by hand:
#   ruby -Ilib test/fuzz/run.rb --seconds 3600
class FuzzTest < HeddleTest
  time_limit 120

  RUN = File.join(__dir__, "run.rb")

  TestSupport::Contract.backends.each do |backend, reason|
    next if backend == TestSupport::Contract::REFERENCE

    define_method("test_#{backend}") { fuzz(backend, reason, "--seconds", "2.5") }
    define_method("test_#{backend}_with_gc_stress") { fuzz(backend, reason, "--seconds", "1.5", "--stress") }
  end

  def test_a_seed_makes_the_same_plan
    plans = Array.new(2) { plan("--seed", "7", "--rounds", "2", "--plan") }

    assert_equal(*plans)
    refute_equal(plans.first, plan("--seed", "8", "--rounds", "2", "--plan"))
  end

  private

  def fuzz(backend, reason, *options)
    skip("backend #{backend}: #{reason}") if reason
    outcome = run_command(*ruby_command, RUN, *options, env: { "HEDDLE_BACKEND" => backend }, timeout: 100)

    assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
    assert_match(/^[1-9]\d* rounds, 0 failed/, outcome.out)
    assert_equal("", outcome.err)
  end

  def plan(*options) = run_command(*ruby_command, RUN, *options).out.lines.drop(1)
end
