# frozen_string_literal: true

require "test_helper"
require "json"

# bench/replaced_methods.rb, tiny.
class ReplacedMethodsBenchTest < HeddleTest
  BENCH = File.expand_path("../../bench/replaced_methods.rb", __dir__)
  require File.expand_path("../../bench/replaced_methods/operations", __dir__)

  def test_every_call
    outcome = run_command(RbConfig.ruby, BENCH, "--json", "--rounds", "1", "--seconds", "0.0001")

    assert_predicate(outcome, :success?, outcome.err)
    cells = JSON.parse(outcome.out).fetch("cells")

    assert_equal(Bench::ReplacedMethods::CALLS.keys.product(%w[plain loaded used]),
                 cells.map { |cell| cell.values_at("method", "side") })
    cells.each { |cell| assert_operator(cell["cost"], :>, 0) }
  end

  def test_all_replaced_methods_are_measured
    require "support/replaced_methods"
    measured = Bench::ReplacedMethods::CALLS.keys.join(" ")

    assert_empty(ReplacedMethods::ALL.keys.reject { |name| measured.include?(name[/[.#].*/]) } - ["Process.daemon"])
  end
end
