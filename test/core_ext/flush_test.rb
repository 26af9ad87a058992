# frozen_string_literal: true

require_relative "../test_helper"

# IO#flush into a full pipe in blocking mode holds up only the fiber that flushes.
contract "Flush" do
  def test_a_full_pipe_in_blocking_mode
    reactor do
      reader, writer = pipe
      blocking_mode(writer)
      writer.sync = false
      nil while writer.write_nonblock("x" * 65_536, exception: false) != :wait_writable
      blocking_mode(writer)
      writer.write("the end")
      assert_others_run do
        go { others_have_run && reader.readpartial(1 << 20) }
        writer.flush
      end
      writer.close

      assert(reader.read.end_with?("the end"))
    end
  end

  def test_it_gives_what_ruby_gives
    reactor do
      reader, writer = pipe

      assert_same(writer, writer.flush)
      assert_same(reader, reader.flush)
      writer.close
      assert_raises(IOError) { writer.flush }
    end
  end
end
