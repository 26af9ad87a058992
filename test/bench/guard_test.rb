# frozen_string_literal: true

# bin/test: takes 12 s, 0.9 of a core

require "test_helper"
require_relative "bench_case"

# The guard against regressions (bench/rows/guard.rb) measures each of its rows, and says whether they keep their
# limits. What it says depends on the machine and on what runs beside it, so no test decides by that.
class BenchGuardTest < BenchCase
  ROWS = Bench.rows.values.select { |row| row.group.name == "guard" }.freeze

  def test_each_row_is_measured
    outcome = run_bench("--rows", "guard", "--check", "--rounds", "1")
    verdict = outcome.success? ? "All goals are met." : "Over the goal"

    assert_includes(outcome.out, verdict, outcome.err)
    refute_match(/^- guard_\w+[,:] /, outcome.out, outcome.err)
    ROWS.each { |row| assert_includes(outcome.out, row.title) }
  end

  # The limits are for the goals alone; a row that fails is no pass.
  def test_a_row_that_fails_is_seen
    outcome = run_bench("--rows", "wrong", "--peers", "threads", "--check",
                        prelude: File.join(__dir__, "fixture_rows.rb"))

    assert_equal(1, outcome.status.exitstatus)
  end
end
