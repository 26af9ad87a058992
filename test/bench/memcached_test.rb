# frozen_string_literal: true

# bin/test: takes 13 s, 0.6 of a core

require "test_helper"
require "support/servers/memcached"
require_relative "bench_case"

# bench/rows/memcached.rb. The children count the values that came back right.
class MemcachedBenchTest < BenchCase
  VARIANTS = %w[none socket hybrid calls operations].map { |name| "memcached_#{name}" }

  def setup
    missing = TestSupport::Servers::Memcached.missing
    skip(missing) if missing
    skip("the gem dalli is not installed") if Gem::Specification.find_all_by_name("dalli").empty?
  end

  def test_every_variant
    cells = bench(*tiny).fetch("cells")

    assert_equal(VARIANTS.product(%w[heddle threads]), cells.map { |cell| cell.values_at("row", "peer") })
    cells.each { |cell| assert_operator(cell.values_at("cpu", "wall", "cpu_ratio", "objects").min, :>, 0) }

    assert_in_delta(cells[0]["objects"], cells[2]["objects"], 0.1, "IO#timeout costs objects")
  end

  def test_a_limit_beside_none_in_one_process
    cells = bench("--rows", "memcached_pair", "--scale", "0.004", "--turns", "2").fetch("cells")

    assert_equal(%w[memcached_pair_none memcached_pair_socket], cells.map { |cell| cell["row"] })
    assert_operator(cells.last["ratio"], :>, 0)
  end

  def test_the_table_has_the_one_of_2009_beside_it
    out = run_bench(*tiny).out

    assert_match(/^memcached: [\d.]+, dalli \d/, out)
    assert_match(/Timeout around each socket call .*21\.71 \(6\.42\)/, out)
  end

  def test_nothing_is_left_when_it_is_interrupted
    options = { env: { "TMPDIR" => tempdir }, timeout: 60 }
    outcome = run_command(RbConfig.ruby, RUN, "--rows", "memcached", "--no-install", "--peers", "heddle",
                          **options) do |pid|
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

  def tiny = ["--rows", "memcached", "--peers", "heddle,threads", "--scale", "0.02", "--turns", "2"]

  # The memcacheds that work in this test's folder.
  def servers
    Dir.glob("/proc/[0-9]*/cwd").select do |link|
      File.readlink(link).start_with?(@tempdirs&.first || "none")
    rescue SystemCallError
      false
    end
  end
end
