# frozen_string_literal: true

require_relative "../../test_helper"
require "pty"

# close_read and close_write: one direction ends, and tasks that wait in it see that as threads do.
contract "HalfClose" do
  def outcome(job)
    [job.value]
  rescue SystemCallError, IOError => e
    e.class
  end

  reads = {
    "gets" => [->(io) { io.gets }, [nil]],
    "gets_of_nothing" => [->(io) { [io.gets, io.gets(0)] }, IOError], # the second one begins after the end
    "readline" => [->(io) { io.readline }, EOFError],
    "getc" => [->(io) { io.getc }, [nil]],
    "getbyte" => [->(io) { io.getbyte }, [nil]],
    "read" => [->(io) { io.read }, [""]],
    "read_of_a_length" => [->(io) { io.read(5) }, [nil]],
    "readpartial" => [->(io) { io.readpartial(5) }, EOFError],
    "sysread" => [->(io) { io.sysread(5) }, EOFError],
    "recv" => [->(io) { io.recv(5) }, [nil]],
    "wait_readable" => [->(io) { io.wait_readable == io }, [true]],
    "IO.select" => [->(io) { IO.select([io]) == [[io], [], []] }, [true]]
  }

  TestSupport::Streams::SOCKETS.each do |kind|
    reads.each do |name, (read, expected)|
      define_method("test_the_reader_of_a_#{kind}_in_#{name}_sees_the_end") do
        reactor do
          one, other = stream_pair(kind)
          job = go { read.call(one) }
          settle
          one.close_read

          assert_equal(expected, outcome(job))
          refute_predicate(one, :closed?)
          assert_raises(IOError) { one.read(1) }
          one.write("x")

          assert_equal("x", other.readpartial(5))
        end
      end
    end

    define_method("test_the_reader_of_a_#{kind}_in_copy_stream_sees_the_end") do
      reactor do
        one, other = stream_pair(kind)
        reader, writer = pipe
        job = go { IO.copy_stream(one, writer) }
        other.write("x")
        reader.readpartial(1) # it has begun
        one.close_read

        assert_equal([1], outcome(job))
        refute_predicate(one, :closed?)
      end
    end

    define_method("test_the_writer_of_a_#{kind}") do
      reactor do
        one, other = stream_pair(kind)
        filled = fill(one)
        job = go { one.write("x" * 5_000_000) }
        settle
        one.close_write
        drain(other, filled) if reference? # (or a UNIX socket keeps it waiting)

        assert_equal(Errno::EPIPE, outcome(job))
        refute_predicate(one, :closed?)
        other.write("x")

        assert_equal("x", one.readpartial(5))
      end
    end
  end

  # Hazard: Ruby's own method is called with what has come, and said that the socket is not open for reading.
  partly = {
    "gets" => ["ab"], "readline" => ["ab"], "getc" => ["a"], "getbyte" => [97]
  }
  partly.each do |name, expected|
    [false, true].each do |used|
      define_method("test_#{name}_gets_what_came_before_the_end#{"_on_a_used_socket" if used}") do
        reactor do
          one, other = socket_pair
          other.write("line\n") && one.gets if used
          job = go { one.public_send(name) }
          settle
          other.write("ab")
          one.close_read

          assert_equal(expected, outcome(job))
          assert_raises(IOError) { one.public_send(name) }
        end
      end
    end
  end

  # Hazard: it was shut down by its number, after the reader had run.
  { "close_read" => %i[close_read gets], "close_write" => %i[close_write write] }.each do |name, (close, wait)|
    define_method("test_#{name}_leaves_the_next_connection_alone") do
      heddle_only("the order of events")
      reactor do
        one, = socket_pair
        number = one.fileno
        fill(one)
        fresh = nil
        job = go do
          one.public_send(wait, *("x" * 1_000_000 if wait == :write))
        rescue SystemCallError, IOError
          nil
        ensure
          one.close
          fresh = socket_pair
        end
        settle
        one.public_send(close)
        job.value

        assert_includes(fresh.map(&:fileno), number)
        fresh.permutation do |from, to|
          from.write("fresh")

          assert_equal("fresh", to.readpartial(5))
        end
      end
    end
  end

  # A part of the string is written: the rest finds the error, and does not wait for room.
  def test_writers_that_have_written_a_part
    reactor do
      one, other = socket_pair
      jobs = Array.new(3) { go { one.write("x" * 3_000_000) } }
      sleep(0.01)
      one.close_write
      other.read if reference?
      outcomes = jobs.map { |job| Timeout.timeout(60) { outcome(job) } }

      assert_empty(outcomes - [Errno::EPIPE, IOError]) # (not opened for writing)
    end
  end

  # The first of two half closes is no close; the second one is.
  def test_both_directions
    reactor do
      one, other = socket_pair
      filled = fill(one)
      writing = go { one.write("x" * 5_000_000) }
      settle
      one.close_read

      refute_predicate(writing, :finished?)
      one.close_write

      assert_equal(IOError, outcome(writing))
      assert_predicate(one, :closed?)
      assert_equal(filled, other.read.bytesize)
    end
  end

  def test_a_listening_socket
    reactor do
      server = tcp_server
      job = go { server.accept }
      settle
      server.close_read

      assert_equal(Errno::EINVAL, outcome(job))
    end
  end

  # Ruby refuses, so nobody is woken.
  def test_a_file_that_is_open_both_ways
    reactor do
      path = File.join(tempdir, "fifo")
      File.mkfifo(path)
      fifo = keep(File.open(path, "r+"))
      job = go { fifo.gets }
      settle

      assert_equal("closing non-duplex IO for reading", assert_raises(IOError) { fifo.close_read }.message)
      assert_raises(IOError) { fifo.close_write }
      fifo.syswrite("line\n")

      assert_equal("line\n", job.value)
    end
  end

  def test_a_terminal_is_closed
    heddle_only("threads hang")
    reactor do
      _, slave = PTY.open.each { |io| keep(io) }
      job = go { slave.gets }
      settle
      slave.close_read

      assert_equal(IOError, outcome(job))
      assert_predicate(slave, :closed?)
    end
  end

  def test_a_direction_that_a_pipe_has_not
    reactor do
      reader, writer = pipe
      job = go { reader.gets }
      settle

      assert_raises(IOError) { reader.close_write }
      assert_raises(IOError) { writer.close_read }
      writer.puts("line")

      assert_equal("line\n", job.value)
    end
  end

  { "close_read" => 0, "close_write" => 1 }.each do |close, side|
    define_method("test_#{close}_of_a_pipe_closes_it") do
      reactor do
        ends = pipe
        filled = fill(ends[1])
        drain(ends[0], filled) if side.zero?
        job = go { side.zero? ? ends[0].gets : ends[1].write("x" * 5_000_000) }
        settle
        ends[side].public_send(close)

        assert_equal(IOError, outcome(job))
        assert_predicate(ends[side], :closed?)
      end
    end
  end

  def test_popen_whose_reader_closes_it
    heddle_only("the order of events")
    reactor do
      io = keep(IO.popen("cat", "r+"))
      fresh = nil
      job = go do
        io.gets
      ensure
        io.close
        fresh = pipe
      end
      settle
      io.close_read

      assert_equal(IOError, outcome(job))
      io.close
      fresh.last.write("x")

      assert_equal("x", fresh.first.readpartial(1))
      assert_predicate(io, :closed?)
    end
  end

  def test_the_other_direction_waits_on
    reactor do
      one, other = socket_pair
      reading = go { one.gets }
      settle
      one.close_write

      assert_nil(other.gets)
      refute_predicate(reading, :finished?)
      other.puts("line")

      assert_equal("line\n", reading.value)
    end
  end

  def test_a_second_object_of_the_socket
    reactor do
      one, = socket_pair
      twin = UNIXSocket.for_fd(one.fileno)
      twin.autoclose = false
      job = go { twin.gets }
      settle
      one.close_read

      assert_nil(job.value)
    end
  end
end
