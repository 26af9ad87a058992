# frozen_string_literal: true

# bin/test: takes 15 s, 0.4 of a core

require_relative "../test_helper"

# A few seconds of bin/soak, and that it sees a leak.
class SoakTest < HeddleTest
  RUN = File.join(__dir__, "run.rb")

  TestSupport::Contract.backends.each do |backend, reason|
    next if backend == TestSupport::Contract::REFERENCE

    define_method("test_#{backend}_is_flat") do
      skip("backend #{backend}: #{reason}") if reason
      outcome = soak("--backend", backend)

      assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
      assert_match(/^flat/, outcome.out)
      assert_includes([6, 12, 18], outcome.out.lines.grep(/^ +\d+ +\d+ +\d+ /).size)
    end
  end

  def test_a_leak_is_seen
    outcome = soak("--only", "leak,sleep_a_little")

    assert_equal(1, outcome.status.exitstatus)
    assert_match(/^LEAK: descriptors grew from \d+ to \d+/, outcome.out)
  end

  def test_a_leak_of_memory_is_seen
    outcome = nil
    in_time(2, 6, 18, 54) do |seconds| # (a busy machine leaks little)
      outcome = soak("--only", "leak_memory,sleep_a_little", "--seconds", seconds.to_s)
      outcome.status.exitstatus == 1
    end

    assert_match(/^LEAK: rss_kb grew from \d+ to \d+/, outcome.out)
  end

  def test_unknown_loads
    outcome = soak("--only", "nothing")

    assert_equal([1, "there is no nothing\n"], [outcome.status.exitstatus, outcome.err])
  end

  private

  def soak(*options) = run_command(*ruby_command, RUN, "--seconds", "2", "--samples", "6", *options)
end
