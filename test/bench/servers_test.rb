# frozen_string_literal: true

# bin/test: takes 16 s, 0.6 of a core

require "test_helper"
require "support/servers/postgres"
require "support/servers/redis"
require_relative "bench_case"

# The rows of servers, of waiting tasks and of memory, tiny. The children check their results.
class ServersBenchTest < BenchCase
  PEERS = %w[heddle-epoll threads].freeze

  def test_http_under_wrk
    skip("wrk is not installed") unless ENV.fetch("PATH").split(":").any? { |folder| File.exist?("#{folder}/wrk") }
    cells = right_cells("http")

    assert_equal(["[\"Hello, world!\", \"\"]"], cells.map { |cell| cell["result"] }.uniq)
    assert_operator(cells.map { |cell| cell["operations"] }.min, :>, 100, "what wrk has counted")
  end

  def test_tls = right_cells("tls_echo", "--scale", "0.01")

  def test_redis
    skip_without(TestSupport::Servers::Redis, "redis-client")
    right_cells("redis", "--scale", "0.01")
  end

  def test_postgres
    skip_without(TestSupport::Servers::Postgres, "pg")
    right_cells("postgres", "--scale", "0.01")
  end

  def test_pings_have_percentiles_and_bytes
    cells = right_cells("idle", "--scale", "0.01")

    assert_equal([%w[p50 p99 bytes]], cells.map { |cell| cell["found"].keys }.uniq)
    cells.each do |cell|
      half, most, bytes = cell["found"].values.map { |figures| figures["median"] }

      assert_operator(0, :<, half)
      assert_operator(half, :<=, most)
      assert_includes(1000..200_000, bytes)
    end
  end

  def test_ticks
    cells = right_cells("ticker", "--scale", "0.1")

    cells.each { |cell| assert_operator(cell["median"], :<=, cell["found"]["max"]["median"]) }
  end

  def test_memory
    rows = Bench.rows.values.select { |row| row.group.name == "memory" }.map(&:name)
    cells = right_cells(rows.join(","), "--scale", "0.05")

    assert_equal(rows.size * PEERS.size, cells.size)
    cells.each { |cell| assert_includes(1000..200_000, cell["median"], cell.inspect) }
  end

  def test_the_table_has_a_line_for_each_figure
    out = run_bench("--rows", "idle", "--peers", "heddle-epoll,threads", "--scale", "0.01").out

    %w[cpu p50 p99].each { |figure| assert_match(%r{#{figure} / ping .*±.*\(\d+\.\d\d\)}, out) }
    assert_match(%r{memory of an idle connection .*bytes / connection}, out)
  end

  def test_what_is_missing_is_told
    outcome = run_bench("--rows", "needy,fine", "--peers", "threads",
                        prelude: File.join(__dir__, "fixture_rows.rb"))

    assert_predicate(outcome, :success?, outcome.err)
    assert_match(/^- needy: no-such-program is not installed/, outcome.out)
    assert_match(/a row that works .*±/, outcome.out)
  end

  private

  def skip_without(server, client)
    missing = server.missing
    skip(missing) if missing
    skip("the gem #{client} is not installed") if Gem::Specification.find_all_by_name(client).empty?
  end

  def right_cells(rows, *options)
    cells = bench("--rows", rows, "--peers", PEERS.join(","), *options).fetch("cells")

    assert_equal(PEERS, cells.map { |cell| cell["peer"] }.uniq)
    cells.each { |cell| assert_nil(cell["failure"], cell.inspect) }
  end
end
