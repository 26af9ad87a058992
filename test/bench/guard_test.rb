# frozen_string_literal: true

# bin/test: takes 5 s, 0.7 of a core

require "test_helper"
require_relative "bench_case"
require_relative "../../bench/support/guard"

# The guard against regressions (bench/guard.rb): counts for one operation of each row, which are the same on each
# machine, with limits.
class BenchGuardTest < BenchCase
  COMMAND = File.join(ROOT, "bench", "guard.rb")
  WORSE = File.join(__dir__, "worse_heddle.rb")
  NAMES = Bench::Guard.names
  # Many tasks that wait at once need one poll together.
  AT_ONCE = %w[switch sleepers mutex echo reads].freeze

  shared = Heddle.backends.select { |backend| backend[:name] == "uring" }
    .map { |backend| backend.merge(name: Bench::Guard::SHARED) }

  [*Heddle.backends, *shared].each do |backend|
    define_method("test_nothing_costs_more_on_#{backend[:name]}") do
      skip(backend[:reason].to_s) unless backend[:available]
      outcome = Bench::Guard::Check.new(backend[:name]).run

      assert_empty(outcome.over, outcome.to_s)
      assert_equal([backend[:name], NAMES], [outcome.backend, outcome.counts.keys])
      outcome.counts.each_value { |own| assert_empty(%i[objects polls calls switches] - own.keys) }
    end
  end

  # A check that cannot fail checks nothing.
  def test_each_row_notices_a_heddle_that_does_more
    outcome = run_command(RbConfig.ruby, COMMAND, "--backend", "epoll", "--tries", "1", "--preload", WORSE, "--json")
    said = JSON.parse(outcome.out)
    counted = %w[objects calls switches system_calls] - said["missing"].keys

    assert_equal(1, outcome.status.exitstatus, outcome.err)
    assert_empty(NAMES.product(counted) - said["over"])
    assert_empty((NAMES - AT_ONCE).product(["polls"]) - said["over"])
  end

  # With which the times are compared.
  def test_each_row_does_the_same_in_plain_ruby
    cells = bench("--rows", "guard", "--peers", "plain", "--scale", "0.01").fetch("cells")

    assert_equal(NAMES.map { |name| ["guard_#{name}", nil] }, cells.map { |cell| cell.values_at("row", "failure") })
  end
end
