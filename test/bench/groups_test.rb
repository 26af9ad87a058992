# frozen_string_literal: true

# bin/test: takes 25 s, 0.6 of a core

require "test_helper"
require_relative "bench_case"

# The groups of rows that compare something else than operations, tiny.
class BenchGroupsTest < BenchCase
  # The children compare what the operations return and raise.
  def test_would_block
    cells = bench("--rows", "would_block", "--scale", "0.012").fetch("cells")

    assert_cells("would_block", %w[plain loaded heddle], cells)
    cells.each do |cell|
      assert_operator(cell["best"], :>, 0)
      assert_match(cell["row"].end_with?("silent") ? /wait_|0/ : / block/, cell["result"])
    end
  end

  def test_replaced_methods
    cells = bench("--rows", "replaced_methods", "--scale", "0.00002").fetch("cells")

    assert_cells("replaced_methods", %w[plain loaded used], cells)
    cells.each { |cell| assert_operator(cell["best"], :>, 0) }
  end

  def test_all_replaced_methods_are_measured
    require "support/replaced_methods"
    measured = Bench::ReplacedMethods::CALLS.keys.join(" ")

    assert_empty(ReplacedMethods::ALL.keys.reject { |name| measured.include?(name[/[.#].*/]) } -
                 ["Process.daemon", "Ractor.new"])
  end

  def test_connect_names
    said = bench("--rows", "connect_names", "--peers", "heddle,threads", "--rounds", "2", "--scale", "0.005")

    assert_cells("connect_names", %w[heddle threads], said["cells"])
    said["cells"].each do |cell|
      assert_operator(cell.values_at("cpu_ratio", "wall_ratio", "wall").min, :>, 0)
    end
    assert_includes(said.dig("environment", "hosts"), "127.0.0.1")
  end

  def test_pools
    cells = bench("--rows", "pools", "--scale", "0.005", "--turns", "1").fetch("cells")

    assert_cells("pools", %w[heddle threads], cells)
  end

  # The children count the right answers.
  def test_fiber_pools
    cells = bench("--rows", "fiber_pools", "--scale", "0.1", "--keep").fetch("cells")

    assert_cells("fiber_pools", %w[heddle threads], cells)
  end

  # A group that is left out for its needs.
  def test_net_http
    peers = "heddle,heddle-accelerated"
    cells = bench("--rows", "net_http", "--scale", "0.01", "--keep", "--peers", peers).fetch("cells")

    assert_cells("net_http", %w[heddle heddle-accelerated], cells)
  end

  def test_rack
    cells = bench("--rows", "rack", "--keep", "--scale", "0.02", "--peers", "heddle-epoll").fetch("cells")

    assert_cells("rack", %w[heddle-epoll], cells)
  end

  def test_main_job
    cells = bench("--rows", "main_job", "--keep", "--scale", "0.02", "--peers", "heddle-epoll").fetch("cells")

    assert_cells("main_job", %w[heddle-epoll], cells)
  end

  # Every request has its answer, at each load.
  def test_tail
    cells = bench("--rows", "tail_*_30,tail_beside_*", "--keep", "--scale", "0.1", "--peers", "heddle")
      .fetch("cells").reject { |cell| cell["row"] == "tail_postgres_30" }

    assert_equal(%w[tail_beside_1ms tail_beside_20ms tail_beside_gc tail_echo_30 tail_http_30],
                 cells.map { |cell| cell["row"] }.uniq.sort)
    assert_measured(cells)
    cells.each do |cell|
      found = cell["found"]

      assert_operator(found.dig("rate", "best"), :>, 0)
      assert_operator(found.dig("most_p999", "best"), :<=, found.dig("most_max", "best"))
    end
  end

  def test_scale
    rows = %w[scale_100 scale_processes_1 scale_processes_2 ractors_1]
    cells = bench("--rows", rows.join(","), "--scale", "0.01", "--peers", "heddle-epoll").fetch("cells")

    assert_equal(rows, cells.map { |cell| cell["row"] })
    assert_measured(cells)
  end

  private

  # Every row of the group has been measured on each of the peers.
  def assert_cells(group, peers, cells)
    rows = Bench.rows.values.select { |row| row.group.name == group }.map(&:name)

    assert_equal(rows.product(peers), cells.map { |cell| cell.values_at("row", "peer") })
    assert_measured(cells)
  end

  def assert_measured(cells)
    assert_empty(cells.filter_map { |cell| cell.values_at("row", "peer", "failure", "detail") if cell["failure"] })
  end
end
