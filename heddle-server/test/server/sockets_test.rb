# frozen_string_literal: true

# bin/test: takes 15 s, 0.6 of a core

require_relative "../test_helper"
require "support/serve_case"

# The UNIX sockets of `heddle serve`.
class ServeSocketsTest < HeddleTest
  include TestSupport::ServeCase

  def mode(name) = File.stat(path(name)).mode & 0o777

  # A proxy runs as another user.
  def test_a_socket_can_be_used_by_other_users_unless_it_has_a_mode
    serve("--bind", "unix:#{path("narrow")}?mode=0600", bind: "unix:#{path("wide")}")

    assert_equal([0o666, 0o600], [mode("wide"), mode("narrow")])
    assert_includes(asked_at(path("narrow")), "one")
  end

  def test_an_abstract_socket
    name = "heddle-test-#{Process.pid}-#{object_id}"
    program = serve(bind: "unix:@#{name}")

    assert_said(program, /listening on unix:@#{name} /)
    assert_includes(asked_at("\0#{name}"), "one")
    program.signal(:USR2)
    program.wait_for(/listening on unix:@#{name}/, 2)

    assert_includes(asked_at("\0#{name}"), "one")
    assert_ends(program)
  end

  def test_the_file_goes_with_the_server_also_after_a_restart
    [0, 1].each do |count|
      program = serve_in(count, bind: "unix:#{path("socket")}")
      program.signal(:USR2)
      program.wait_for(/listening/, 2)

      assert_includes(asked_at(path("socket")), "one")
      assert_ends(program)
      refute_path_exists(path("socket"))
    end
  end

  # Such as that of a server that was started since then.
  def test_a_file_that_is_not_its_own_stays
    program = serve(bind: "unix:#{path("socket")}")
    File.unlink(path("socket"))
    keep(UNIXServer.new(path("socket")))

    assert_ends(program)

    assert_path_exists(path("socket"))
  end

  def test_a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not
    Socket.open(:UNIX, :STREAM) { |socket| socket.bind(Addrinfo.unix(path("left"))) }
    program = serve(bind: "unix:#{path("left")}")

    assert_includes(asked_at(path("left")), "one")
    other = run_command(*ruby_command, EXE, "serve", "--bind", "unix:#{path("left")}", chdir: @dir)

    assert_equal(1, other.status.exitstatus)
    assert_includes(other.err, "Address already in use")
    assert_includes(asked_at(path("left")), "one")
    assert_ends(program)
  end
end
