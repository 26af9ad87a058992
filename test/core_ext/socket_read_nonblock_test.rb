# frozen_string_literal: true

require_relative "../test_helper"

# BasicSocket#read_nonblock says and does what Ruby's own does.
contract "SocketReadNonblock" do
  def test_what_it_gives_and_raises
    reactor do
      one, other = socket_pair
      error = assert_raises(IO::EAGAINWaitReadable) { one.read_nonblock(1) }

      assert_equal("Resource temporarily unavailable - read would block", error.message)
      assert_equal(:wait_readable, one.read_nonblock(1, exception: false))
      other.write("text")
      buffer = +"before"

      assert_equal(["te", buffer, "xt"], [one.read_nonblock(2), one.read_nonblock(2, buffer), buffer])
      other.close

      assert_equal("end of file reached", assert_raises(EOFError) { one.read_nonblock(1) }.message)
      assert_nil(one.read_nonblock(1, exception: false))
    end
  end

  def test_a_method_that_another_library_has_put_there_stays
    code = <<~RUBY
      require "socket"
      class BasicSocket
        alias before read_nonblock
        def read_nonblock(...) = before(...)
      end
      own = BasicSocket.instance_method(:read_nonblock)
      require "heddle"
      print(own == BasicSocket.instance_method(:read_nonblock))
    RUBY

    assert_equal("true", run_ruby(code, heddle: false).out)
  end
end
