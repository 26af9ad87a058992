# frozen_string_literal: true

require "test_helper"
require_relative "bench_case"
require_relative "../../bench/support/goals"
require_relative "../../bench/support/runner"

# What `bench/run.rb --check` says of the rows that have a goal.
class BenchGoalsTest < BenchCase
  GROUP = Bench::Group.new(best: true)

  def test_a_ratio_below_the_goal
    assert_verdict(:met, "All goals are met.", "row" => [[100, 101, 103], [198, 199, 200]])
  end

  def test_a_ratio_above_the_goal
    assert_verdict(:over, "Over the goal (ratio; goal): row, heddle-epoll (2.010; 2.00).",
                   "row" => [[100, 101, 103], [201, 202, 203]])
  end

  # Whether it would be below the goal or above it.
  def test_rounds_that_differ_too_much
    said = "Cannot tell on this machine (spread of the rounds): row, heddle-epoll (50%)."

    assert_verdict(:unknown, said, "row" => [[100, 101, 103], [150, 225, 300]])
    assert_verdict(:unknown, said, "row" => [[100, 101, 103], [300, 450, 500]])
    assert_verdict(:unknown, said, "row" => [[100, 150, 160], [150, 151, 152]])
  end

  # One that is slower than all others does not matter.
  def test_a_round_in_which_something_else_ran
    assert_verdict(:met, "All goals are met.", "row" => [[100, 101, 500], [150, 151, 700]])
  end

  def test_a_single_round
    assert_verdict(:unknown, "Cannot tell on this machine (spread of the rounds): row, heddle-epoll (one round).",
                   "row" => [[100], [150]])
  end

  def test_one_row_that_is_over_its_goal_is_enough
    assert_verdict(:over, "Over the goal (ratio; goal): two, heddle-epoll (3.000; 2.00).\n" \
                          "Cannot tell on this machine (spread of the rounds): one, heddle-epoll (100%).",
                   "one" => [[100, 100, 100], [150, 300, 310]], "two" => [[100, 100, 100], [300, 300, 300]])
  end

  def test_rows_without_a_goal
    cells = cells_of("row" => [[100, 200], [100, 900]]).each { |cell| cell.row.goal = nil }

    assert_equal(:met, Bench::Goals.new(cells) { cells.first }.verdict)
  end

  # In fixture_rows.rb.
  def test_the_command_has_a_status_of_its_own
    outcome = run_bench("--rows", "keeps,wavers", "--rounds", "3", "--check", prelude: FIXTURE)

    assert_equal(3, outcome.status.exitstatus, outcome.out)
    assert_match(/^Cannot tell on this machine \(spread of the rounds\): wavers, threads \(\d+%\)\.$/, outcome.out)
  end

  # The limits are for the goals alone; a row that fails is no pass.
  def test_a_row_that_fails
    assert_equal(1, run_bench("--rows", "wrong", "--peers", "threads", "--check", prelude: FIXTURE).status.exitstatus)
  end

  private

  # @param rows [Hash] name => the figures of the base's rounds, and those of Heddle's
  def assert_verdict(verdict, text, rows)
    cells = cells_of(rows)
    goals = Bench::Goals.new(cells) { |cell| cells.find { |one| one.row.equal?(cell.row) } }

    assert_equal([verdict, text], [goals.verdict, goals.to_s])
  end

  def cells_of(rows)
    rows.flat_map do |name, figures|
      row = Bench::Row.new(name:, group: GROUP, figure: :bytes, goal: { "heddle" => 2.0 })
      %w[plain heddle-epoll].zip(figures).map do |peer, own|
        rounds = own.map { |number| [{ "found" => { "bytes" => number } }] }
        Bench::Runner::Cell.new(row, Bench.peers.fetch(peer), rounds)
      end
    end
  end
end
