# frozen_string_literal: true

require "test_helper"

# The ports of the suite's servers. Several processes of the suite look for one at the same time.
class FreePortTest < Minitest::Test
  include TestSupport::Tools
  include TestSupport::Subprocess

  def test_nothing_listens_there
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", free_port) }
  end

  # A server may not listen yet.
  def test_no_other_process_gets_it
    skip("only Linux has such names") unless RUBY_PLATFORM.include?("linux")
    file = File.expand_path("../support/free_port", __dir__)
    outcome = run_ruby("require(ARGV[0])\nTestSupport::FreePort.reserve(ARGV[1])", file, free_port.to_s, heddle: false)

    assert_match(/Errno::EADDRINUSE/, outcome.err)
  end
end
