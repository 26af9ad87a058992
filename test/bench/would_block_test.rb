# frozen_string_literal: true

# bin/test: takes 13 s, 0.8 of a core

require "test_helper"
require "json"

# bench/would_block.rb, tiny: its children compare what the operations return and raise.
class WouldBlockBenchTest < HeddleTest
  BENCH = File.expand_path("../../bench/would_block.rb", __dir__)
  require File.expand_path("../../bench/would_block/variants", __dir__)

  def test_every_variant
    names = Bench::WouldBlock::VARIANTS.keys
    outcome = run_command(RbConfig.ruby, BENCH, "--json", "--rounds", "1", "--operations", "30")

    assert_predicate(outcome, :success?, outcome.err)
    cells = JSON.parse(outcome.out).fetch("cells")

    assert_equal(names.product(%w[plain heddle run], %w[silent raising]),
                 cells.map { |cell| cell.values_at("variant", "side", "form") })
    cells.each do |cell|
      assert_operator(cell["best"], :>, 0)
      assert_match(cell["form"] == "silent" ? /wait_|0/ : / block/, cell["result"].last.to_s)
    end
  end
end
