# frozen_string_literal: true

require "test_helper"
require "json"

# bench/connect_names.rb, tiny.
class ConnectNamesBenchTest < HeddleTest
  BENCH = File.expand_path("../../bench/connect_names.rb", __dir__)

  def test_both_ways_of_two_implementations
    outcome = run_command(RbConfig.ruby, BENCH, "--json", "--rounds", "2", "--operations", "5", "--no-install",
                          "--peers", "heddle,threads", timeout: 110)

    assert_predicate(outcome, :success?, outcome.err)
    said = JSON.parse(outcome.out)

    lines = said["lines"]

    assert_equal(%w[heddle threads].product(%w[sequence at_once]), lines.map { |line| line.values_at("peer", "way") })
    lines.each do |line|
      assert_operator(line["cpu"], :>, 0)
      assert_operator(line.dig("name", "wall"), :>, 0)
    end
    assert_includes(said.dig("environment", "hosts"), "127.0.0.1")
  end
end
