# frozen_string_literal: true

# bin/test: takes 30 s, 1 core

require_relative "../test_helper"
require "open3"
require "rbconfig"

# bench/web_servers.rb starts a server, loads it and prints its figures.
class WebServersBenchTest < Minitest::Test
  SCRIPT = File.expand_path("../../bench/web_servers.rb", __dir__)

  # On a slow machine wrk names requests that took longer than two seconds. Other errors it must not name.
  LINE = /^\| Heddle \| [1-9]\d* ±0% \| [\d.]+ \| [\d.]+ \| [\d.]+ \| \d+ \|(?:(?: \D+ 0,){3} timeout \d+ |  )\|$/

  FLOODS = File.expand_path("../../bench/floods.rb", __dir__)

  def setup
    %w[protocol-http1 protocol-rack].each { |gem| skip_without(gem) }
  end

  def skip_without(gem)
    skip("the gem #{gem} is not here") if Gem::Specification.find_all_by_name(gem).empty?
  end

  def skip_without_wrk
    folders = ENV.fetch("PATH").split(":")
    skip("wrk is not here") unless folders.any? { |folder| File.executable?(File.join(folder, "wrk")) }
  end

  def run_script(script, *)
    out, status = Open3.capture2e("timeout", "-k", "1", "60", RbConfig.ruby, script, *)

    assert_predicate(status, :success?, out)
    out
  end

  def load_heddle(name, seconds = 1)
    run_script(SCRIPT, "--loads", name, "--servers", "Heddle", "--seconds", seconds.to_s, "--rounds", "1")
  end

  def test_hello_world
    skip_without_wrk

    assert_match(LINE, load_heddle("hello"))
  end

  def test_a_page_of_rails
    skip_without_wrk
    %w[railties activerecord sqlite3].each { |gem| skip_without(gem) }

    assert_match(LINE, load_heddle("query", 5))
  end

  def test_requests_beside_others_that_compute
    assert_match(%r{^\| Heddle \| [1-9]\d* ±0% \| [\d.]+ \| [\d.]+ \| [\d.]+ \|  \| \d+ \| .*\d slow/s \|$},
                 load_heddle("slow", 6))
  end

  def test_small_requests_beside_uploads
    assert_match(%r{^\| Heddle \| [1-9]\d* ±0% \| [\d.]+ \| [\d.]+ \| [\d.]+ \|  \| \d+ \| .*\d uploads/s \|$},
                 load_heddle("uploads"))
  end

  # bench/floods.rb attacks a server, and asks it meanwhile.
  def test_a_flood
    out = run_script(FLOODS, "--kinds", "pings", "--seconds", "1")

    assert_match(%r{^\| HTTP/2: pings \| [1-9]\d* \| [\d.]+ \| [\d.]+ \| 0 \| \d+ \| \d+ \|$}, out)
  end
end
