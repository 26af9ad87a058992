# frozen_string_literal: true

require_relative "../../test_helper"
require "io/console"
require "pty"

# A read may find the end of the file where the kernel has no event to tell: a FIFO that nobody has opened to write, a
# terminal that waits for no byte or for a while only.
contract "EndWithoutEvent", both_ways: true do
  reads = {
    "gets" => [->(io) { io.gets }, nil],
    "getc" => [->(io) { io.getc }, nil],
    "read" => [->(io) { io.read }, ""],
    "read_of_a_length" => [->(io) { io.read(5) }, nil],
    "readpartial" => [->(io) { io.readpartial(5) }, EOFError],
    "sysread" => [->(io) { io.sysread(5) }, EOFError],
    "eof?" => [->(io) { io.eof? }, true]
  }
  nonblock = File::RDONLY | File::NONBLOCK
  classes = {
    "File" => ->(path) { File.open(path, nonblock) },
    "IO" => ->(path) { IO.for_fd(IO.sysopen(path, nonblock)) }
  }

  def outcome
    Timeout.timeout(60) { yield }
  rescue EOFError => e
    e.class
  end

  def fifo
    File.join(tempdir, "fifo").tap { |path| File.mkfifo(path) }
  end

  def terminal(**options)
    master, slave = PTY.open.each { |io| keep(io) }
    slave.raw!(**options)
    [master, slave]
  end

  reads.each do |name, (read, expected)|
    classes.each do |class_name, open|
      define_method("test_#{name}_of_a_fifo_without_a_writer_as_#{class_name}") do
        reactor do
          # (Its number has been waited for.)
          reader, writer = IO.pipe
          job = go { reader.gets }
          settle
          writer.puts("x")
          job.value
          [reader, writer].each(&:close)
          io = keep(open.call(fifo))

          assert_equal([expected], [outcome { read.call(io) }])
        end
      end
    end

    [0, 0.1].each do |time|
      define_method("test_#{name}_of_a_terminal_that_waits_for_#{(time * 1000).round}_ms") do
        reactor do
          _, slave = terminal(min: 0, time: time)
          taken = elapsed { assert_equal([expected], [outcome { read.call(slave) }]) }

          assert_operator(taken, :>=, time - 0.01)
        end
      end
    end
  end

  def test_read_nonblock
    reactor do
      _, slave = terminal(min: 0, time: 0)
      io = keep(File.open(fifo, File::RDONLY | File::NONBLOCK))

      [slave, io].each { |one| assert_raises(EOFError) { one.read_nonblock(5) } }
      _, patient = terminal(min: 0, time: 1)

      assert_equal(:wait_readable, patient.read_nonblock(5, exception: false))
    end
  end

  # The usual loop of a program that asks for keys.
  def test_keys_are_asked_for
    reactor do
      master, slave = terminal(min: 0, time: 0)
      turns = 0
      job = go do
        loop do
          key = slave.getc and break key
          turns += 1
        end
      end
      wait_until("it asks again") { turns > 1 }
      master.syswrite("k")

      assert_equal("k", job.value)
    end
  end

  def test_a_byte_that_comes_in_time
    reactor do
      master, slave = terminal(min: 0, time: 20)
      job = go { slave.getc }
      settle
      master.syswrite("k")

      assert_equal("k", job.value)
    end
  end

  # poll reports the first byte, and the read waits for the others.
  def test_others_run_while_a_terminal_waits_for_more
    reactor do
      master, slave = terminal(min: 3, time: 0.2)
      master.syswrite("a")
      text = assert_others_run { slave.readpartial(10) }

      assert_equal("a", text)
    end
  end

  def test_others_run_while_a_terminal_waits
    reactor do
      _, slave = terminal(min: 0, time: 0.2)

      assert_nil(assert_others_run { slave.getc })
    end
  end

  def test_closed_while_it_waits
    heddle_only("threads are not woken")
    reactor do
      _, slave = terminal(min: 0, time: 20)
      job = go { slave.getc }
      settle
      slave.close

      assert_instance_of(IOError, job.failure)
    end
  end

  # Ruby gives an IO a timeout; the terminal's own comes after it.
  def test_a_timeout_of_the_io
    reactor do
      _, slave = terminal(min: 0, time: 20)
      slave.timeout = 0.02

      assert_raises(IO::TimeoutError) { slave.getc }
    end
  end
end
