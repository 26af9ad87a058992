# frozen_string_literal: true

require_relative "../../test_helper"
require "support/certificate"

# read_nonblock and write_nonblock never wait.
contract "Nonblock" do
  # A byte is read and put back: an SSL socket may be readable and yet hold no data.
  def await_data(reader)
    reader.ungetc(reader.getc)
  end

  # Whether the data would come soon makes no difference.
  on_streams "read_nonblock raises at once when nothing is there", TestSupport::Streams::PLAIN do |reader, writer|
    go { sleep(0.1) && writer.write("late") }
    error = assert_raises(IO::EAGAINWaitReadable) { reader.read_nonblock(10) }

    assert_kind_of(IO::WaitReadable, error)
    assert_kind_of(Errno::EAGAIN, error)
    assert_equal("Resource temporarily unavailable - read would block", error.message)
    reader.wait_readable

    assert_equal("late", reader.read_nonblock(10))
  end

  on_streams "read_nonblock raises at once when nothing is there", ["ssl"] do |reader, writer|
    go { sleep(0.1) && writer.write("late") }
    # TLS 1.3 sends session tickets after the handshake: they are readable, but no data.
    assert_raises(OpenSSL::SSL::SSLErrorWaitReadable) { reader.read_nonblock(10) }
    reader.to_io.wait_readable until (chunk = reader.read_nonblock(10, exception: false)) != :wait_readable

    assert_equal("late", chunk)
  end

  on_streams "read_nonblock without exception" do |reader, writer|
    go { sleep(0.1) && writer.write("late") }

    assert_equal(:wait_readable, reader.read_nonblock(10, exception: false))
    reader.to_io.wait_readable until (chunk = reader.read_nonblock(10, exception: false)) != :wait_readable

    assert_equal("late", chunk)
  end

  on_streams "read_nonblock returns what is there" do |reader, writer|
    writer.write("hello")
    await_data(reader)

    assert_equal("he", reader.read_nonblock(2))
    assert_equal("llo", reader.read_nonblock(10, exception: false))
  end

  on_streams "read_nonblock fills the given buffer" do |reader, writer|
    writer.write("hello")
    await_data(reader)
    buffer = +"old content"

    assert_same(buffer, reader.read_nonblock(10, buffer))
    assert_equal("hello", buffer)
  end

  on_streams "read_nonblock returns buffered data" do |reader, writer|
    writer.write("line\nrest")
    reader.gets

    assert_equal("rest", reader.read_nonblock(10))
  end

  on_streams "read_nonblock at the end" do |reader, writer|
    writer.close
    reader.to_io.wait_readable while reader.read_nonblock(10, exception: false) == :wait_readable

    assert_raises(EOFError) { reader.read_nonblock(10) }
    assert_nil(reader.read_nonblock(10, exception: false))
  end

  on_streams "write_nonblock returns at once when nothing fits", TestSupport::Streams::PLAIN do |reader, writer|
    filled = fill(writer)
    go { sleep(0.1) && drain(reader, filled) }
    error = assert_raises(IO::EAGAINWaitWritable) { writer.write_nonblock("x") }

    assert_kind_of(IO::WaitWritable, error)
    assert_equal("Resource temporarily unavailable - write would block", error.message)
    assert_equal(:wait_writable, writer.write_nonblock("x", exception: false))
    writer.wait_writable

    assert_equal(1, writer.write_nonblock("x"))
  end

  on_streams "write_nonblock returns at once when nothing fits", ["ssl"] do |reader, writer|
    chunk = "x" * 16_384
    filled = fill(writer, chunk)

    assert_raises(OpenSSL::SSL::SSLErrorWaitWritable) { writer.write_nonblock(chunk) }
    job = go { reader.read(filled + chunk.bytesize) }
    writer.to_io.wait_writable while writer.write_nonblock(chunk, exception: false) == :wait_writable

    assert_equal(filled + chunk.bytesize, job.value.bytesize)
  end

  on_streams "write_nonblock writes a part" do |reader, writer|
    data = "x" * 4_000_000
    count = writer.write_nonblock(data, exception: false)

    assert_includes(1...data.bytesize, count)
    assert_equal(count, reader.read(count).bytesize)
  end

  on_streams "write_nonblock to a gone reader", %w[pipe unix socket] do |reader, writer|
    reader.close

    assert_raises(Errno::EPIPE) { writer.write_nonblock("x") }
  end
end
