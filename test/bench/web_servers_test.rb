# frozen_string_literal: true

# bin/test: takes 8 s, 1 core

require_relative "../test_helper"
require "open3"
require "rbconfig"

# bench/web_servers.rb starts a server, loads it and prints its figures.
class WebServersBenchTest < Minitest::Test
  SCRIPT = File.expand_path("../../bench/web_servers.rb", __dir__)

  def test_hello_world
    folders = ENV.fetch("PATH").split(":")
    skip("wrk is not here") unless folders.any? { |folder| File.executable?(File.join(folder, "wrk")) }
    %w[protocol-http1 protocol-rack].each do |gem|
      skip("the gem #{gem} is not here") if Gem::Specification.find_all_by_name(gem).empty?
    end
    out, status = Open3.capture2e("timeout", "-k", "1", "60", RbConfig.ruby, SCRIPT, "--loads", "hello", "--servers",
                                  "Heddle", "--seconds", "1", "--rounds", "1")

    assert_predicate(status, :success?, out)
    assert_match(/^\| Heddle \| [1-9]\d* ±0% \| [\d.]+ \| [\d.]+ \| [\d.]+ \| \d+ \|  \|$/, out)
  end
end
