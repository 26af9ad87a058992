# frozen_string_literal: true

require_relative "../test_helper"

# IO.copy_stream with a stream at one end waits in the fiber that copies, where a close and a cancel reach it.
contract "CopyStreamPatch" do
  def test_it_waits_for_the_source_and_for_the_destination
    text = "text" * 100_000
    reactor do
      (from, to), (source, destination) = [pipe, pipe]
      writing = go { to.write(text) && to.close }
      reading = go { source.read }
      copied = IO.copy_stream(from, destination)
      destination.close

      assert_equal([text.bytesize, text, nil], [copied, reading.value, writing.value])
    end
  end

  # Who feeds a filter and reads from it by turns waits for each part.
  def test_each_part_goes_to_a_buffered_destination_at_once
    reactor do
      [nil, 6].each do |length|
        source, feed = pipe
        reader, destination = pipe
        destination.sync = false
        copying = go { IO.copy_stream(source, destination, length) }
        feed.write("one")

        assert_equal("one", reader.readpartial(10))
        feed.write("two")

        assert_equal("two", reader.readpartial(10))
        feed.close

        assert_equal(6, copying.value)
      end
    end
  end

  def test_a_close_ends_it
    heddle_only("on threads, Ruby 3.4 and newer leave the worker behind")
    reactor do
      source, = pipe
      _, destination = pipe
      copying = go { IO.copy_stream(source, destination) }
      settle
      source.close

      assert_instance_of(IOError, copying.failure)
    end
  end

  def test_a_cancel_ends_it
    heddle_only("cancels")
    reactor do
      source, = pipe
      copying = Heddle.spawn { IO.copy_stream(source, File.join(tempdir, "copy")) }
      settle
      copying.cancel

      assert_raises(Heddle::Cancelled) { copying.value }
    end
  end

  def test_arguments_are_refused_as_by_ruby
    path = File.join(tempdir, "file").tap { |name| File.write(name, "0123456789") }
    reactor do
      assert_equal(3, IO.copy_stream(path, "#{path}.copy", 3, 2))
      assert_equal("234", File.read("#{path}.copy"))
      assert_raises(Errno::ENOENT) { IO.copy_stream("#{path}.not", path) }
      assert_raises(TypeError) { IO.copy_stream(path, "#{path}.copy", "x") }
      assert_raises(RangeError) { IO.copy_stream(path, "#{path}.copy", 2**70) }
      assert_raises(NoMethodError) { IO.copy_stream(nil, "#{path}.copy") }
      assert_raises(NoMethodError) { IO.copy_stream(path, nil) }
    end
  end

  def test_a_folder_is_refused_as_by_ruby
    reactor do
      [[$stderr], [File.join(tempdir, "copy")], [File.join(tempdir, "copy"), 5]].each do |arguments|
        error = assert_raises(Errno::EISDIR) { IO.copy_stream(tempdir, *arguments) }

        assert_equal("Is a directory - read", error.message)
      end
    end
  end

  def test_a_file_keeps_its_content_if_the_source_cannot_be_read
    path = File.join(tempdir, "content").tap { |name| File.write(name, "kept") }
    write_only = keep(File.open(File.join(tempdir, "other"), "w"))
    closed = File.open(path, &:itself)
    [[write_only, "not opened for reading"], [closed, "closed stream"]].each do |source, message|
      error = assert_raises(IOError) { reactor { IO.copy_stream(source, path) } }

      assert_equal(message, error.message)
      assert_equal("kept", File.read(path))
    end
  end
end
