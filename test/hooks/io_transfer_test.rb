# frozen_string_literal: true

require_relative "../test_helper"
require "support/hooks"

# io_read, io_write, io_pread and io_pwrite, called as Ruby calls them.
contract "HookIOTransfer" do
  include TestSupport::Hooks

  heddle_only "hooks"

  on_streams "io_read waits for data", TestSupport::Streams::PLAIN do |reader, writer|
    space = buffer(100)
    job = go { io_read(reader, space) }
    settle

    refute_predicate(job, :finished?) unless one_transfer?
    writer.write("hello")

    assert_equal(5, job.value) unless one_transfer?
    assert_equal("hello", space.get_string(0, 5)) unless one_transfer?
  end

  on_streams "io_read reads what there is", TestSupport::Streams::PLAIN do |reader, writer|
    writer.write("hello")
    space = buffer(100)

    assert_equal(5, io_read(reader, space))
    assert_equal("hello", space.get_string(0, 5))
  end

  on_streams "io_read at an offset", TestSupport::Streams::PLAIN do |reader, writer|
    writer.write("hello")
    space = buffer("..........")

    assert_equal(5, io_read(reader, space, offset: 3))
    assert_equal("...hello..", space.get_string)
  end

  on_streams "io_read of a least length", TestSupport::Streams::PLAIN do |reader, writer|
    skip("since Ruby 4.1 the length is the most that is read") if one_transfer?
    space = buffer(100)
    job = go { io_read(reader, space, length: 6) }
    writer.write("abc")
    settle

    refute_predicate(job, :finished?)
    writer.write("defgh")

    assert_equal(8, job.value)
    assert_equal("abcdefgh", space.get_string(0, 8))
  end

  on_streams "io_read at the end", TestSupport::Streams::PLAIN do |reader, writer|
    writer.write("abc")
    writer.close

    assert_equal(3, io_read(reader, buffer(100), length: one_transfer? ? 0 : 10))
    assert_equal(0, io_read(reader, buffer(100)))
  end

  on_streams "io_read with three arguments", TestSupport::Streams::PLAIN do |reader, writer|
    writer.write("hello")

    assert_equal(5, scheduler.io_read(reader, buffer(100), 0))
  end

  on_streams "io_write", TestSupport::Streams::PLAIN do |reader, writer|
    assert_equal(5, io_write(writer, buffer("hello")))
    assert_equal("hello", reader.readpartial(100))
    assert_equal(3, io_write(writer, buffer("hello"), offset: 2))
    assert_equal("llo", reader.readpartial(100))
  end

  on_streams "io_write of a length", TestSupport::Streams::PLAIN do |reader, writer|
    size = 1_000_000
    received = go { reader.read(size) }
    data = Random.new(2).bytes(size)
    sent = 0
    sent += io_write(writer, buffer(data), length: size - sent, offset: sent) while sent < size

    assert_equal(data, received.value)
  end

  def test_errors_are_returned_as_negative_numbers
    reactor do
      reader, writer = pipe
      reader.close

      assert_equal(-Errno::EPIPE::Errno, io_write(writer, buffer("x")))
      assert_equal(-Errno::EBADF::Errno, io_read(keep(File.open(File::NULL, "w")), buffer(10)))
      other, = pipe

      assert_equal(-Errno::ESPIPE::Errno, io_pread(other, buffer(10), 0))
    end
  end

  def test_io_pread_and_io_pwrite
    reactor do
      path = File.join(tempdir, "file")
      File.write(path, "0123456789")
      file = keep(File.open(path, "r+"))
      space = buffer("..........")

      assert_equal(4, io_pread(file, space, 6, offset: 2))
      assert_equal("..6789....", space.get_string)
      assert_equal(3, io_pwrite(file, buffer("..abc"), 1, offset: 2))
      assert_equal("0abc456789", File.read(path))
      assert_equal(0, file.pos)
      assert_equal(0, io_pread(file, buffer(10), 100))
    end
  end

  def test_an_offset_beyond_the_buffer
    reactor do
      reader, writer = pipe
      writer.write("x")

      assert_raises(ArgumentError) { io_read(reader, buffer(10), offset: 11) }
      assert_equal("x", reader.readpartial(1))
    end
  end

  # Through IO::Buffer, Ruby asks for a least number of bytes.
  def test_the_methods_of_io_buffer
    reactor do
      reader, writer = pipe
      space = IO::Buffer.new(10)
      go { writer.write("ab") && settle && writer.write("cdef") }

      assert_operator(space.read(reader, 6), :>=, 1)
      assert_equal("ab", space.get_string(0, 2))
      assert_equal(4, IO::Buffer.for("text") { |text| text.write(writer, 4) })
    end
  end

  # Hazard: the experimental warning of IO::Buffer was printed at the first read.
  def test_no_warning
    out = assert_script(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        reader, writer = IO.pipe
        writer.write("x")
        print reader.readpartial(1)
      end
    RUBY

    assert_equal("x", out)
  end
end
