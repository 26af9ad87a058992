# frozen_string_literal: true

require "test_helper"
require "support/servers/memcached"
require "json"

# bench/memcached.rb, tiny. Its children count the values that came back right.
class MemcachedBenchTest < HeddleTest
  BENCH = File.expand_path("../../bench/memcached.rb", __dir__)
  VARIANTS = %w[none socket hybrid calls operations].freeze
  def setup
    missing = TestSupport::Servers::Memcached.missing
    skip(missing) if missing
    skip("the gem dalli is not installed") if Gem::Specification.find_all_by_name("dalli").empty?
  end

  def test_every_variant
    outcome = bench("--json")

    assert_equal("", outcome.err)
    answer = JSON.parse(outcome.out)
    cells = answer.fetch("cells")

    assert_equal(%w[heddle threads].product(VARIANTS), cells.map { |cell| cell.values_at("peer", "variant") })
    cells.each { |cell| assert_operator(cell.values_at("cpu", "real", "cpu_ratio", "objects").min, :>, 0) }

    assert_operator(answer["timed_ratio"], :>, 0)
    assert_in_delta(cells[0]["objects"], cells[1]["objects"], 0.1, "IO#timeout costs objects")
  end

  def test_the_table_has_the_one_of_2009_beside_it
    out = bench.out

    assert_match(/^memcached: [\d.]+, dalli \d/, out)
    assert_match(/Timeout around each socket call .*21\.71 \(6\.42\)/, out)
    assert_match(/In one process, by turns, heddle takes \d\.\d+ times the CPU with IO#timeout/, out)
  end

  def test_nothing_is_left_when_it_is_interrupted
    options = { env: { "TMPDIR" => tempdir }, timeout: 60 }
    outcome = run_command(RbConfig.ruby, BENCH, "--no-install", "--peers", "heddle", **options) do |pid|
      wait_until("a memcached") { servers.any? }
      sleep(0.3)
      Process.kill(:INT, -pid)
    end

    assert_equal("stopped\n", outcome.err)
    refute_predicate(outcome, :success?)
    assert_empty(servers)
    assert_empty(Dir.children(@tempdirs.first))
  end

  private

  def bench(*)
    outcome = run_command(RbConfig.ruby, BENCH, "--no-install", "--peers", "heddle,threads", "--rounds", "1",
                          "--n", "10", "--turns", "2", *, timeout: 100)

    assert_predicate(outcome, :success?, outcome.err)
    outcome
  end

  # The memcacheds that work in this test's folder.
  def servers
    Dir.glob("/proc/[0-9]*/cwd").select do |link|
      File.readlink(link).start_with?(@tempdirs&.first || "none")
    rescue SystemCallError
      false
    end
  end
end
