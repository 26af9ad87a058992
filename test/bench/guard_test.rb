# frozen_string_literal: true

# bin/test: takes 30 s, 0.9 of a core

require "test_helper"
require_relative "bench_case"

# The guard against regressions (bench/rows/guard.rb): Heddle's tasks beside plain Ruby, in one run, with limits that a
# busy machine keeps. If a row is over its limit, all rows are measured once more, for longer: a row alone has other
# ratios than among the others. What is slow is over its limit both times.
class BenchGuardTest < BenchCase
  SLOW = File.join(__dir__, "slow_heddle.rb")
  ROWS = Bench.rows.values.select { |row| row.group.name == "guard" }.freeze

  def test_nothing_has_become_slow
    outcomes = [guard("--rounds", "4")]
    outcomes << guard if over(outcomes.first).any?

    outcomes.each { |outcome| assert_measured(outcome) }
    assert_empty(outcomes.map { |outcome| over(outcome) }.reduce(:&), outcomes.map(&:out).join("\n"))
  end

  # A check that cannot fail is none.
  def test_what_is_sixty_per_cent_slower_is_seen
    outcome = guard("--peers", "plain,heddle-slow-1.6", "--rounds", "3", prelude: SLOW)

    assert_equal(1, outcome.status.exitstatus, "#{outcome.out}\n#{outcome.err}")
    assert_operator(over(outcome).size, :>=, ROWS.size / 2, outcome.out)
  end

  def test_every_row_can_trip
    outcome = guard("--peers", "plain,heddle-slow-3.0", "--rounds", "3", prelude: SLOW)

    assert_equal(ROWS.map(&:name).sort, over(outcome).sort, outcome.out)
  end

  # The limits are for the goals alone; a row that fails is no pass.
  def test_a_row_that_fails_is_seen
    outcome = run_bench("--rows", "wrong", "--peers", "threads", "--check",
                        prelude: File.join(__dir__, "fixture_rows.rb"))

    assert_equal(1, outcome.status.exitstatus)
  end

  private

  def guard(*options, prelude: nil)
    load = prelude ? ["-r", prelude] : []
    run_command(RbConfig.ruby, *load, RUN, "--no-install", "--rows", "guard", "--check", *options)
  end

  # Every row has its figures.
  def assert_measured(outcome)
    verdict = outcome.success? ? "All goals are met." : "Over the goal"

    assert_includes(outcome.out, verdict, outcome.err)
    refute_match(/^- guard_\w+[,:] /, outcome.out, outcome.err)
  end

  def over(outcome) = outcome.out.scan(/(guard_\w+), heddle\S* \(/).flatten.uniq
end
