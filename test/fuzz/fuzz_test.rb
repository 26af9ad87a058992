# frozen_string_literal: true

# bin/test: takes 23 s, 0.4 of a core

require_relative "../test_helper"

# The random operations of test/fuzz/run.rb, with a new seed each time: a few seconds, or as many as
# HEDDLE_FUZZ_SECONDS says. For hours, by hand:
#   ruby -Ilib test/fuzz/run.rb --seconds 3600
class FuzzTest < HeddleTest
  RUN = File.join(__dir__, "run.rb")
  SECONDS = Float(ENV.fetch("HEDDLE_FUZZ_SECONDS", "2.5"))

  time_limit SECONDS.ceil + 700

  TestSupport::Contract.backends.each do |backend, reason|
    next if backend == TestSupport::Contract::REFERENCE

    define_method("test_#{backend}") { fuzz(backend, reason, SECONDS) }
    define_method("test_#{backend}_with_gc_stress") { fuzz(backend, reason, SECONDS / 2, "--stress") }
  end

  def test_a_seed_makes_the_same_plan
    plans = Array.new(2) { plan("--seed", "7", "--rounds", "2", "--plan") }

    assert_equal(*plans)
    refute_equal(plans.first, plan("--seed", "8", "--rounds", "2", "--plan"))
  end

  private

  def fuzz(backend, reason, seconds, *options)
    skip("backend #{backend}: #{reason}") if reason
    outcome = run_command(*ruby_command, RUN, "--seconds", seconds.to_s, *options,
                          env: { "HEDDLE_BACKEND" => backend }, timeout: seconds + 680)

    assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
    assert_match(/^[1-9]\d* rounds, 0 failed/, outcome.out)
    assert_equal("", outcome.err)
  end

  def plan(*options) = run_command(*ruby_command, RUN, *options).out.lines.drop(1)
end
