# frozen_string_literal: true

# bin/test: takes 8 s, 0.3 of a core

require "test_helper"
require "support/servers/postgres"
require_relative "bench_case"

# bench/rows/database.rb. The children count the answers that were right, and the queries that run at once.
class DatabaseBenchTest < BenchCase
  def setup
    missing = TestSupport::Servers::Postgres.missing
    skip(missing) if missing
    skip("the gem pg is not installed") if Gem::Specification.find_all_by_name("pg").empty?
  end

  def test_tasks_threads_and_one_connection
    said = bench("--rows", "database_workers_5,database_each_5", "--scale", "0.1")
    cells = said.fetch("cells")

    assert_equal(%w[database_workers_5 database_each_5].product(%w[heddle threads plain]),
                 cells.map { |cell| cell.values_at("row", "peer") })
    assert_equal([["12", 12]], cells.map { |cell| cell.values_at("result", "operations") }.uniq)
    assert_match(/\A[\d.]+, pg \d[\d.]*\z/, said.dig("environment", "PostgreSQL"))
  end
end
