# frozen_string_literal: true

require "test_helper"
require "json"

# What the tests of bench/ have in common: its rows, loaded, and its command.
class BenchCase < HeddleTest
  ROOT = File.expand_path("../..", __dir__)
  RUN = File.join(ROOT, "bench", "run.rb")
  FIXTURE = File.join(__dir__, "fixture_rows.rb")
  require File.join(ROOT, "bench", "support", "registry")
  Bench.load_all

  private

  # What --json says.
  def bench(*, **)
    outcome = run_bench(*, "--json", **)

    assert_predicate(outcome, :success?, outcome.err)
    assert_equal([1, ""], [outcome.out.lines.size, outcome.err])
    JSON.parse(outcome.out)
  end

  def run_bench(*, prelude: nil)
    load = prelude ? ["-r", prelude] : []
    run_command(RbConfig.ruby, *load, RUN, "--no-install", "--rounds", "1", *)
  end
end
