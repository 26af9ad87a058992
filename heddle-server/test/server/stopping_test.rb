# frozen_string_literal: true

# bin/test: takes 10 s, 0.6 of a core

require_relative "../test_helper"
require "support/serve_case"

# What `heddle serve` says while it stops.
class ServeStoppingTest < HeddleTest
  include TestSupport::ServeCase

  def test_it_says_what_it_waits_for_and_what_it_gives_up
    [0, 1].each do |count|
      program = serve_in(count, "--drain", "1")
      asking = Thread.new { program.get("/slow?60") rescue $! } # rubocop:disable Style/RescueModifier
      wait_until_begun
      File.unlink(path("begun"))
      program.signal(:TERM)

      assert_kind_of(EOFError, asking.value)
      assert_predicate(program.wait, :success?)
      assert_said(program, %r{waits for 1 request: GET /slow\?60 \(\d+\.\d s\)$})
      assert_said(program, %r{gives up 1 request: GET /slow\?60 \(\d+\.\d s\)$})
    end
  end

  def test_it_says_nothing_of_requests_if_there_are_none
    program = serve

    assert_equal("one", ask(program))
    assert_ends(program)
    assert_empty(program.said.grep(/waits for|gives up/))
  end

  # The processor is not used up, either.
  def test_a_lack_of_descriptors_is_said_once
    script = "Process.setrlimit(:NOFILE, 64, 64); exec(*ARGV)"
    program = serve(command: [RbConfig.ruby, "-e", script, *ruby_command, EXE, "serve", "-p", "0"], bind: nil)
    clients = Array.new(100) { keep(TCPSocket.new("127.0.0.1", program.port)) }
    clients.each { |client| client.write("GET /?30 HTTP/1.1\r\nhost: a\r\n\r\n") }
    program.wait_for(/accepts no connections/)
    sleep(1)

    assert_equal(1, program.said.grep(/accepts no connections/).size)
  end
end
