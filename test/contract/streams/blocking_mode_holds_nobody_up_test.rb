# frozen_string_literal: true

# bin/test: takes 14 s, 0.1 of a core

require "fcntl"
require "io/console"
require "io/nonblock"
require "pty"
require_relative "../../test_helper"

# Descriptors in blocking mode, as a shell hands them on, must not hold up the other fibers.
contract "BlockingMode" do
  TestSupport::Streams::PLAIN.each do |kind|
    {
      "readpartial" => ->(io) { io.readpartial(10) },
      "sysread" => ->(io) { io.sysread(10) },
      "gets" => ->(io) { io.gets },
      "read" => ->(io) { io.read(5) },
      "getc" => ->(io) { io.getc },
      "wait_readable" => ->(io) { io.wait_readable && io.readpartial(10) },
      "select" => ->(io) { IO.select([io]) && io.readpartial(10) }
    }.each do |name, operation|
      define_method("test_#{name}_on_a_blocking_#{kind}") do
        reactor do
          reader, writer = stream_pair(kind)
          blocking_mode(reader)
          value = assert_others_run do
            go { others_have_run && writer.write("abcd\n") }
            operation.call(reader)
          end

          assert_equal(name == "getc" ? "a" : "abcd\n", value)
        end
      end
    end

    {
      "write" => ->(io, data) { io.write(data) },
      "syswrite" => ->(io, data) { data = data[io.syswrite(data)..] until data.empty? },
      "flush" => ->(io, data) { (io.sync = false) || (io.write(data) && io.flush) }
    }.each do |name, operation|
      define_method("test_#{name}_on_a_blocking_#{kind}") do
        reactor do
          reader, writer = stream_pair(kind)
          blocking_mode(writer)
          data = Random.new(1).bytes(1_500_000)
          received = nil
          assert_others_run do
            receiving = go { others_have_run && (received = reader.read(data.bytesize)) }
            operation.call(writer, data)
            receiving.value
          end

          assert_equal(data, received)
        end
      end
    end
  end

  # write(2) waits until it has written all, and hardly a program looks at the number that syswrite returns.
  {
    "syswrite" => ->(io, data) { io.syswrite(data) },
    "syswrite_of_a_buffered_io" => ->(io, data) { (io.sync = false) || io.syswrite(data) },
    "a_buffer" => ->(io, data) { IO::Buffer.for(data) { |buffer| buffer.write(io, 0) } }
  }.each do |name, write|
    TestSupport::Streams::PLAIN.each do |kind|
      define_method("test_all_of_#{name}_is_written_to_a_blocking_#{kind}") do
        reactor do
          reader, writer = stream_pair(kind)
          blocking_mode(writer)
          data = Random.new(1).bytes(1_500_000)
          receiving = go { reader.read(data.bytesize) }

          assert_equal(data.bytesize, write.call(writer, data))
          assert_equal(data, receiving.value)
        end
      end

      define_method("test_a_part_of_#{name}_is_written_to_a_nonblocking_#{kind}") do
        reactor do
          _reader, writer = stream_pair(kind)
          writer.nonblock = true

          assert_includes(1...5_000_000, write.call(writer, "x" * 5_000_000))
        end
      end
    end
  end

  # The content of the buffer when the pipe is full.
  {
    "flush" => ->(io) { io.flush },
    "close" => ->(io) { io.close },
    "close_write" => ->(io) { io.close_write },
    "reopen" => ->(io) { io.reopen(File::NULL) },
    "puts" => ->(io) { io.puts("y" * 5000) || io.flush }
  }.each do |name, operation|
    define_method("test_#{name}_of_a_buffer_before_a_full_blocking_pipe") do
      reactor do
        reader, writer = pipe
        fill(writer)
        blocking_mode(writer)
        writer.sync = false
        writer.write("z" * 5000)
        received = nil
        assert_others_run do
          receiving = go { others_have_run && (received = reader.readpartial(80_000) + reader.readpartial(80_000)) }
          operation.call(writer)
          receiving.value
        end

        assert_equal(5000, received.count("z"))
      end
    end
  end

  # The mode is shared with whoever else has the descriptor (the shell): it stays as it was.
  def test_reading_leaves_the_mode_alone
    reactor do
      reader, writer = pipe
      blocking_mode(reader)
      job = go { reader.readpartial(10) }
      settle
      writer.write("x")
      job.value

      assert_equal(0, reader.fcntl(Fcntl::F_GETFL) & File::NONBLOCK)
    end
  end

  def test_a_terminal
    reactor do
      master, slave = PTY.open.each { |io| keep(io) }
      line = assert_others_run do
        go { others_have_run && master.puts("typed") }
        slave.gets
      end

      assert_equal("typed\n", line)
      assert_equal("typed\r\n", master.gets)
      reading = go { master.readpartial(100) }
      settle
      slave.write("shown")

      assert_equal("shown", reading.value)
    end
  end

  # A terminal is writable as soon as there is room for a byte. A write that waited for the rest would stop the process,
  # with the task that reads the other end.
  {
    "terminal" => -> { PTY.open },
    "terminal_that_is_raw" => -> { PTY.open.tap { |_, slave| slave.raw! } },
    "master_of_a_terminal" => -> { PTY.open.reverse.tap { |slave, _| slave.raw! } }
  }.each do |name, open|
    %i[write syswrite print].each do |method|
      define_method("test_#{method}_of_much_to_a_#{name}") do
        reactor do
          reader, writer = open.call.each { |io| keep(io) }
          writing = go { 20.times { writer.public_send(method, "#{"x" * 9_999}\n") } && writer.flush }
          text = +""
          (text << reader.readpartial(4096)) && sleep(0.0005) until text.count("\n") == 20
          writing.value

          assert_equal(199_980, text.count("x"))
          assert_equal(0, writer.fcntl(Fcntl::F_GETFL) & File::NONBLOCK)
        end
      end
    end
  end

  def test_a_writer_to_a_full_terminal_is_cancelled
    heddle_only("cancel")
    Heddle.run(backend: backend) do
      _master, slave = PTY.open.each { |io| keep(io) }
      task = Heddle.spawn { loop { slave.write("x" * 10_000) } }
      sleep(0.02)
      task.cancel.wait

      assert_predicate(task, :cancelled?)
    end
  end

  def test_a_hung_up_terminal
    reactor do
      master, slave = PTY.open.each { |io| keep(io) }
      job = go { master.readpartial(100) }
      settle
      slave.close

      assert_instance_of(Errno::EIO, job.failure)
    end
  end

  def test_a_fifo_open_for_both
    reactor do
      path = File.join(tempdir, "fifo")
      File.mkfifo(path)
      reader = keep(File.open(path, "r+"))
      line = assert_others_run do
        go { others_have_run && File.write(path, "line\n") }
        reader.gets
      end

      assert_equal("line\n", line)
    end
  end

  def test_reading_a_fifo_to_its_end
    reactor do
      path = File.join(tempdir, "fifo")
      File.mkfifo(path)
      reader = keep(File.open(path, File::RDONLY | File::NONBLOCK))
      writer = keep(File.open(path, "w"))
      blocking_mode(reader)
      text = assert_others_run do
        go { others_have_run && writer.write("text") && writer.close }
        reader.read
      end

      assert_equal("text", text)
    end
  end
end
