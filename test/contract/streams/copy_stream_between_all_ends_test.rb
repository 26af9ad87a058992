# frozen_string_literal: true

# bin/test: takes 15 s, 0.2 of a core

require "pathname"
require "stringio"
require "tempfile"
require "timeout"
require_relative "../../test_helper"

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
    close_with_room(writer)

    assert_equal(data.bytesize, count)
    assert_equal(data, job.value.b)
  end

  on_streams "copy from a stream", TestSupport::Streams::ALL do |reader, writer|
    target = "#{path}.copy"
    job = go { IO.copy_stream(reader, target) }
    writer.write(data)
    close_with_room(writer)

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
        others_have_run
        writer.write("slow ")
        others_have_run
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
      job = go { others_have_run && (received = reader.read(data.bytesize)) }
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

  # What can be copied to a stream that nobody reads.
  def sources
    {
      "a path" => ->(to) { IO.copy_stream(path, to) },
      "an offset" => ->(to) { IO.copy_stream(path, to, nil, 10) },
      "a file" => ->(to) { File.open(path) { |file| IO.copy_stream(file, to) } },
      "a file and an offset" => ->(to) { File.open(path) { |file| IO.copy_stream(file, to, 300_000, 0) } },
      "an object" => ->(to) { IO.copy_stream(StringIO.new(data), to) }
    }
  end

  def with_blocked_copies(kind)
    sources.each do |name, copy|
      _, writer = stream_pair(kind)
      fill(writer)
      yield(name, writer, copy)
    end
  end

  TestSupport::Streams::PLAIN.each do |kind|
    define_method("test_cancel_ends_it_on_#{kind}") do
      heddle_only("threads have no cancel")
      reactor do
        with_blocked_copies(kind) do |name, writer, copy|
          task = Heddle.spawn { copy.call(writer) }
          sleep(0.02)
          task.cancel

          refute_nil(task.wait(60), name)
        end
      end
    end

    define_method("test_a_timeout_ends_it_on_#{kind}") do
      reactor do
        jobs = {}
        with_blocked_copies(kind) do |name, writer, copy|
          # (Enough time for the opening of a file: if a timeout interrupts that, Ruby 3.3 loses the descriptor.)
          jobs[name] = go { Timeout.timeout(0.5) { copy.call(writer) } }
        end

        jobs.each { |name, job| assert_instance_of(Timeout::Error, job.failure, name) }
      end
    end

    define_method("test_close_ends_it_on_#{kind}") do
      heddle_only("Ruby does not tell a thread") # (3.3+: of a close while it copies)
      reactor do
        with_blocked_copies(kind) do |name, writer, copy|
          job = go { copy.call(writer) }
          sleep(0.02)
          writer.close

          assert_instance_of(IOError, job.failure, name)
          assert_match(/stream closed|closed stream/, job.failure.message)
        end
      end
    end
  end

  def test_path_to_a_fifo_without_a_reader_that_goes_on
    reactor do
      File.mkfifo(fifo = "#{path}.fifo")
      job = go { Timeout.timeout(0.1) { IO.copy_stream(path, fifo) } }
      # (Not opened for reading alone, which would wait for ever when the time is over already.)
      File.open(fifo, "r+b") { assert_instance_of(Timeout::Error, job.failure) }
    end
  end

  def test_fifo_to_path
    reactor do
      File.mkfifo(fifo = "#{path}.fifo")
      job = go { IO.copy_stream(fifo, "#{path}.copy") }
      File.binwrite(fifo, data)

      assert_equal(data.bytesize, job.value)
      assert_equal(data, File.binread("#{path}.copy"))
    end
  end

  on_streams "copy of all forms", TestSupport::Streams::ALL do |reader, writer|
    forms = [[nil, 699_000], [-1, 699_000], [5, 0], [0, 0], [0], [100, -1], [50, 699_990], [50, 900_000]]
    copied = forms.map do |numbers|
      [IO.copy_stream(path, writer, *numbers), File.open(path) { |file| IO.copy_stream(file, writer, *numbers) },
       IO.copy_stream(Pathname(path), writer, *numbers)].uniq
    end
    writer.close

    assert_equal([[1000], [1000], [5], [0], [0], [100], [10], [0]], copied)
    assert_equal([data[-1000..] * 6, data[0, 5] * 3, data[0, 100] * 3, data[-10..] * 3].join, reader.read.b)
  end

  on_streams "the position of the file", TestSupport::Streams::PLAIN do |reader, writer|
    File.open(path, "rb") do |file|
      file.gets # fills Ruby's buffer
      file.pos = 10
      first = file.read(3)
      file.ungetbyte(first)
      IO.copy_stream(file, writer, 1000, 2000)

      assert_equal(10, file.pos)
      assert_equal(30_000, IO.copy_stream(file, writer, 30_000))
      assert_equal([30_010, data[30_010, 5]], [file.pos, file.read(5)])
    end
    writer.close

    assert_equal(data[2000, 1000] + data[10, 30_000], reader.read.b)
  end

  def test_what_is_in_the_buffer_of_the_writer_goes_first
    reactor do
      reader, writer = pipe
      writer.sync = false
      writer.write("first ")
      IO.copy_stream(path, writer, 6, 3)

      assert_equal("first #{data[3, 6]}", reader.readpartial(100).b)
    end
  end

  def test_to_a_pipe_of_popen
    reactor do
      IO.popen("cat", "r+b") do |cat|
        job = go { cat.read }
        IO.copy_stream(path, cat)
        cat.close_write

        assert_equal(data, job.value)
      end
    end
  end

  def test_errors
    reactor do
      reader, writer = pipe
      file = keep(File.open(path))
      File.write("#{path}.only", "")
      cases = [[TypeError, path, writer, "x"], [TypeError, path, writer, 1, "x"], [RangeError, path, writer, 1 << 70],
               [RangeError, path, writer, 1, 1 << 70], [Errno::ENOENT, "#{path}.none", writer], [IOError, path, reader],
               [IOError, writer, "#{path}.x"], [IOError, path, keep(File.open(path))],
               [Errno::ESPIPE, reader, writer, 1, 1],
               [ArgumentError, StringIO.new("x"), writer, 1, 1], [Errno::EISDIR, path, tempdir],
               [ArgumentError, "a\0b", writer], [NoMethodError, 1, writer]]

      cases.each { |error, *arguments| assert_raises(error, arguments.inspect) { IO.copy_stream(*arguments) } }
      file.close

      assert_raises(IOError) { IO.copy_stream(file, writer) }
    end
  end

  def test_objects_with_a_path_or_an_io
    reactor do
      reader, writer = pipe
      Tempfile.create do |temporary|
        temporary.write("in a Tempfile")
        temporary.flush
        temporary.rewind

        assert_equal(13, IO.copy_stream(temporary, writer))
        assert_equal(4, IO.copy_stream(Struct.new(:to_path).new(temporary.path), writer, 4))
        assert_equal("in a Tempfilein a", reader.readpartial(100))
      end
    end
  end

  def test_a_file_of_the_kernel_that_has_no_size
    heddle_only("Ruby copies nothing of it")
    reactor do
      reader, writer = pipe
      count = IO.copy_stream("/proc/self/stat", writer)

      assert_equal(count, reader.readpartial(5000).bytesize)
    end
  end

  def test_others_run_while_a_big_file_goes_to_a_stream_that_takes_all
    heddle_only("threads are switched by time")
    File.truncate(path, 150 << 20)
    reactor do
      File.open(File::NULL, "w") { |null| assert_others_run { IO.copy_stream(path, null) } }
    end
  end

  def test_file_to_file_in_parts
    reactor do
      File.open("#{path}.big", "wb") { |file| file.pwrite("end", (64 << 20) - 1) }
      size = (64 << 20) + 2

      assert_equal(size, IO.copy_stream("#{path}.big", "#{path}.copy"))
      assert_equal(size, File.size("#{path}.copy"))
      assert_equal("end", File.binread("#{path}.copy", 5, size - 3))
      assert_equal(2, IO.copy_stream("#{path}.big", "#{path}.copy", nil, size - 2))
      assert_equal("nd", File.read("#{path}.copy"))
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
