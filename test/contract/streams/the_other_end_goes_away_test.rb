# frozen_string_literal: true

require_relative "../../test_helper"

# What readers and writers see when the other end goes away.
contract "EndOfStream", both_ways: true do
  on_streams "a parked reader sees the end" do |reader, writer|
    jobs = [
      go { reader.gets },
      go { reader.read(5) },
      go { reader.getc }
    ]
    settle
    writer.close

    assert_equal([nil, nil, nil], jobs.map(&:value))
  end

  on_streams "a parked readpartial raises EOFError" do |reader, writer|
    job = go { reader.readpartial(5) }
    settle
    writer.close

    assert_instance_of(EOFError, job.failure)
    assert_equal("end of file reached", job.failure.message)
  end

  on_streams "a parked sysread raises EOFError" do |reader, writer|
    job = go { reader.sysread(5) }
    settle
    writer.close

    assert_instance_of(EOFError, job.failure)
  end

  on_streams "eof waits for the answer" do |reader, writer|
    job = go { reader.eof? }
    settle

    refute_predicate(job, :finished?)
    writer.close

    assert(job.value)
  end

  on_streams "eof is false once data come" do |reader, writer|
    job = go { reader.eof? }
    settle
    writer.write("x")

    refute(job.value)
    assert_equal("x", reader.readpartial(5))
  end

  on_streams "data before the end are not lost" do |reader, writer|
    writer.write("last words")
    writer.close

    assert_equal("last", reader.read(4))
    assert_equal(" words", reader.read)
    assert_equal("", reader.read)
    assert_nil(reader.read(1))
    assert_nil(reader.gets)
    assert_raises(EOFError) { reader.readpartial(1) }
  end

  on_streams "a write to a gone reader", %w[pipe unix socket] do |reader, writer|
    reader.close

    assert_raises(Errno::EPIPE) { writer.write("x") }
    assert_raises(Errno::EPIPE) { writer.syswrite("x") }
  end

  # What could not be written stays in the buffer of the closed IO.
  on_streams "closes after one that failed", %w[pipe unix socket] do |reader, writer|
    writer.sync = false
    writer.write("x")
    reader.close

    assert_raises(Errno::EPIPE) { writer.close }
    assert_nil(writer.close)
    assert_raises(IOError) { writer.flush }
  end

  on_streams "a parked writer sees that the reader goes", %w[pipe unix socket] do |reader, writer|
    job = go { writer.write("x" * 4_000_000) }
    settle

    refute_predicate(job, :finished?)
    reader.close

    assert_kind_of(SystemCallError, job.failure)
    assert_includes([Errno::EPIPE, Errno::ECONNRESET], job.failure.class)
  end

  def test_reset_of_a_tcp_connection
    reactor do
      reader, writer = tcp_pair
      job = go { reader.readpartial(5) }
      settle
      writer.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
      writer.close

      assert_instance_of(Errno::ECONNRESET, job.failure)
    end
  end

  def test_reset_while_writing
    reactor do
      reader, writer = tcp_pair
      job = go { writer.write("x" * 8_000_000) }
      settle
      reader.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
      reader.close

      assert_includes([Errno::EPIPE, Errno::ECONNRESET], job.failure.class)
    end
  end

  on_streams "half closed sockets", TestSupport::Streams::SOCKETS do |one, other|
    job = go { one.read }
    settle
    other.write("question")
    other.close_write

    assert_equal("question", job.value)
    one.write("answer")
    one.close

    assert_equal("answer", other.read)
  end

  on_streams "shutdown wakes the own reader", TestSupport::Streams::SOCKETS do |one, _other|
    job = go { one.read }
    settle
    one.shutdown(:RD)

    assert_equal("", job.value)
  end
end
