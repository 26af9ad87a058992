# frozen_string_literal: true

# bin/test: takes 12 s, 0.4 of a core

require_relative "../test_helper"
require "support/examples"

contract "ChatExample" do
  include TestSupport::Examples

  def setup
    super
    @program = start_example("chat", 0)
    @port = Integer(heard(@program, /nc 127\.0\.0\.1 (\d+)/)[1])
  end

  # A member who has heard that he is in.
  def enter(name)
    client = keep(TCPSocket.new("127.0.0.1", @port))

    assert_equal("Your name? ", client.read(11))
    client.puts(name)

    assert_equal("* #{name} is here\n", client.gets)
    client
  end

  def test_each_line_goes_to_all
    ann = enter("Ann")
    bob = enter("Bob")
    ann.puts("hello")

    assert_equal("Ann: hello\n", bob.gets)
    bob.puts("hi", "/quit")

    assert_equal("Bob: hi\n", bob.read)
    assert_equal(["* Bob is here\n", "Ann: hello\n", "Bob: hi\n", "* Bob has left\n"], Array.new(4) { ann.gets })
  end

  def test_one_who_goes_without_a_word
    ann = enter("Ann")
    bob = enter("Bob")
    bob.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
    bob.close

    assert_equal(["* Bob is here\n", "* Bob has left\n"], Array.new(2) { ann.gets })
  end

  def test_sigterm_ends_it_gracefully
    members = Array.new(5) { |number| enter("member #{number}") }
    unnamed = keep(TCPSocket.new("127.0.0.1", @port))
    unnamed.read(11)
    members.last.puts("a last question")
    members.first.gets until $_.to_s.start_with?("member 4: ")
    @program.signal(:TERM)
    heard(@program, /the chat has ended/)

    assert_predicate(ended(@program), :success?)
    members.each { |member| assert_match(/^\* the chat ends now\n\z/, member.read) }
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", @port) }
  end

  def test_ctrl_c_does_so_too
    ann = enter("Ann")
    @program.signal(:INT)

    assert_equal("* the chat ends now\n", ann.read)
    assert_predicate(ended(@program), :success?)
  end
end
