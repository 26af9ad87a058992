# frozen_string_literal: true

require_relative "../test_helper"
require "support/examples"

contract "WaitForExample" do
  include TestSupport::Examples

  def test_waits_until_all_are_there
    early = keep(TCPServer.new("127.0.0.1", 0))
    port = free_port
    program = start_example("wait_for", "--seconds", 60, "127.0.0.1:#{early.addr[1]}", "localhost:#{port}")
    heard(program, /:#{early.addr[1]} is there/, :out)

    assert_nil(program.status)
    keep(TCPServer.new("127.0.0.1", port))

    assert_predicate(ended(program), :success?, program.err)
    assert_includes(program.out, "localhost:#{port} is there\n")
  end

  def test_ends_when_the_time_is_over
    there = keep(TCPServer.new("127.0.0.1", 0))
    port = free_port
    program = run_example("wait_for", "--seconds", 1, "[::1]:#{port}", "127.0.0.1:#{there.addr[1]}")

    assert_equal(1, program.status.exitstatus)
    assert_equal("after 1.0 s still missing: [::1]:#{port}\n", program.err)
    assert_equal("127.0.0.1:#{there.addr[1]} is there\n", program.out)
  end
end
