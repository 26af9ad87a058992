# frozen_string_literal: true

require "stringio"
require_relative "../test_helper"

# IO.copy_stream between all kinds of ends.
contract "CopyStream" do
  def data
    @data ||= Random.new(5).bytes(700_000).freeze
  end

  def path
    @path ||= File.join(tempdir, "file").tap { |name| File.binwrite(name, data) }
  end

  on_streams "copy to a stream", TestSupport::Streams::ALL do |reader, writer|
    job = go { reader.read }
    count = File.open(path, "rb") { |file| IO.copy_stream(file, writer) }
    writer.close

    assert_equal(data.bytesize, count)
    assert_equal(data, job.value.b)
  end

  on_streams "copy from a stream", TestSupport::Streams::ALL do |reader, writer|
    target = "#{path}.copy"
    job = go { IO.copy_stream(reader, target) }
    writer.write(data)
    writer.close

    assert_equal(data.bytesize, job.value)
    assert_equal(data, File.binread(target))
  end

  on_streams "copy of a length and from an offset", TestSupport::Streams::PLAIN do |reader, writer|
    assert_equal(100, IO.copy_stream(path, writer, 100, 5000))
    assert_equal(data[5000, 100], reader.read(100))
  end

  on_streams "copy waits for a slow source", TestSupport::Streams::PLAIN do |reader, writer|
    target = StringIO.new
    assert_others_run do
      go do
        sleep(0.07)
        writer.write("slow ")
        sleep(0.07)
        writer.write("source")
        writer.close
      end
      IO.copy_stream(reader, target)
    end

    assert_equal("slow source", target.string)
  end

  on_streams "copy waits for a slow target", TestSupport::Streams::PLAIN do |reader, writer|
    received = nil
    assert_others_run do
      job = go { sleep(0.12) && (received = reader.read(data.bytesize)) }
      IO.copy_stream(path, writer)
      job.value
    end

    assert_equal(data, received)
  end

  def test_stream_to_stream
    reactor do
      in_read, in_write = pipe
      out_read, out_write = socket_pair
      copying = go { IO.copy_stream(in_read, out_write).tap { out_write.close } }
      reading = go { out_read.read }
      in_write.write(data)
      in_write.close

      assert_equal(data.bytesize, copying.value)
      assert_equal(data, reading.value.b)
    end
  end

  def test_file_to_file
    reactor do
      assert_equal(data.bytesize, IO.copy_stream(path, "#{path}.copy"))
      assert_equal(data, File.binread("#{path}.copy"))
    end
  end

  def test_many_copies_at_once
    reactor do
      jobs = Array.new(10) { |i| go { IO.copy_stream(path, "#{path}.#{i}") } }

      assert_equal([data.bytesize], jobs.map(&:value).uniq)
    end
  end

  def test_to_a_gone_reader
    reactor do
      reader, writer = pipe
      job = go { IO.copy_stream(path, writer) }
      settle
      reader.close

      assert_instance_of(Errno::EPIPE, job.failure)
    end
  end
end
