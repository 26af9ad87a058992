# frozen_string_literal: true

require "io/wait"
require_relative "../../test_helper"

# IO#wait_readable, #wait_writable and #wait: results, timeouts, and no wait where none is needed.
contract "Wait" do
  on_streams "wait_readable waits for data", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { reader.wait_readable }
    settle

    refute_predicate(job, :finished?)
    writer.write("x")

    assert_same(reader, job.value)
  end

  on_streams "wait_readable with a timeout returns nil", TestSupport::Streams::PLAIN do |reader, _writer|
    [0.05, Rational(1, 20)].each do |timeout|
      result = :none
      taken = elapsed { result = reader.wait_readable(timeout) }

      assert_nil(result)
      assert_operator(taken, :>=, 0.05)
    end
  end

  on_streams "wait_readable with a timeout returns when data come", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { reader.wait_readable(20) }
    settle
    writer.write("x")

    assert_same(reader, job.value)
  end

  # Hazard: a timeout of 0 that always answers "not ready" to save a system call.
  on_streams "wait_readable zero only looks", TestSupport::Streams::PLAIN do |reader, writer|
    assert_nil(reader.wait_readable(0))
    writer.write("x")

    assert_same(reader, reader.wait_readable(1))
    assert_same(reader, reader.wait_readable(0))
    assert_same(reader, reader.wait_readable(0.0))
  end

  on_streams "wait_readable is immediate while data are buffered", TestSupport::Streams::PLAIN do |reader, writer|
    writer.write("line\nrest")
    reader.gets

    assert(reader.wait_readable)
    assert(reader.wait_readable(0))
  end

  # Hazard: a mere hang-up was not mapped to the events asked for.
  on_streams "wait_readable is true at the end", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { reader.wait_readable(10) }
    settle
    writer.close

    assert_same(reader, job.value)
    assert_same(reader, reader.wait_readable(0))
    assert_nil(reader.read(1))
  end

  on_streams "wait_writable is immediate while there is room" do |_reader, writer|
    io = writer.to_io

    assert_same(io, io.wait_writable)
    assert_same(io, io.wait_writable(0))
    assert_same(io, io.wait_writable(5))
  end

  on_streams "wait_writable waits for room", TestSupport::Streams::PLAIN do |reader, writer|
    filled = fill(writer)

    assert_nil(writer.wait_writable(0))
    assert_nil(writer.wait_writable(0.03))
    job = go { writer.wait_writable(20) }
    settle

    refute_predicate(job, :finished?)
    drain(reader, filled)

    assert_same(writer, job.value)
  end

  on_streams "wait_writable is true when the reader is gone", %w[pipe unix socket] do |reader, writer|
    fill(writer)
    job = go { writer.wait_writable(10) }
    settle
    reader.close

    assert_same(writer, job.value)
    assert_raises(Errno::EPIPE) { writer.write("x") }
  end

  on_streams "wait with an event mask", TestSupport::Streams::SOCKETS do |reader, writer|
    both = IO::READABLE | IO::WRITABLE

    assert_equal(IO::WRITABLE, reader.wait(both, 5))
    assert_nil(reader.wait(IO::READABLE, 0))
    assert_nil(reader.wait(IO::READABLE, 0.02))
    writer.write("x")
    wait_until { reader.wait_readable(0) }

    assert_equal(both, reader.wait(both, 5))
    assert_equal(IO::READABLE, reader.wait(IO::READABLE, nil))
  end

  on_streams "wait with the old arguments", TestSupport::Streams::SOCKETS do |reader, writer|
    assert_nil(reader.wait(0))
    assert_nil(reader.wait(0.02))
    assert_same(reader, reader.wait(1, :write))
    assert_same(reader, reader.wait(1, :read_write))
    writer.write("x")

    assert_same(reader, reader.wait(5))
    assert_same(reader, reader.wait(5, :read))
  end

  on_streams "wait for no event is an argument error", ["unix"] do |reader, _writer|
    assert_raises(ArgumentError) { reader.wait(0, 1) }
  end

  def test_wait_priority_sees_urgent_data
    reactor do
      reader, writer = tcp_pair

      assert_nil(reader.wait_priority(0))
      job = go { reader.wait_priority(10) }
      sleep(0.02)
      writer.send("!", Socket::MSG_OOB)

      assert_same(reader, job.value)
    end
  end

  on_streams "a reader and a writer on one socket", TestSupport::Streams::SOCKETS do |one, other|
    filled = fill(one)
    order = []
    reading = go { one.wait_readable && (order << :readable) }
    writing = go { one.wait_writable && (order << :writable) }
    settle
    other.write("x")
    reading.value

    assert_equal([:readable], order)
    drain(other, filled)
    writing.value

    assert_equal(%i[readable writable], order)
  end

  # Hazard: several waiters of one descriptor queued first-in first-out, so that a reader blocks a writer.
  on_streams "two readers share what comes", TestSupport::Streams::PLAIN do |reader, writer|
    jobs = Array.new(2) { go { reader.readpartial(1) } }
    settle
    writer.write("a")
    writer.write("b")

    assert_equal(%w[a b], jobs.map(&:value).sort)
  end

  on_streams "a timeout of one waiter leaves the other", TestSupport::Streams::PLAIN do |reader, writer|
    short = go { reader.wait_readable(0.05) }
    long = go { reader.wait_readable(20) }

    assert_nil(short.value)
    settle

    refute_predicate(long, :finished?)
    writer.write("x")

    assert_same(reader, long.value)
  end

  on_streams "a timeout without an end", ["pipe"] do |reader, writer|
    [Float::INFINITY, 1e30].each do |seconds|
      assert_raises(RangeError) { reader.wait_readable(seconds) }
      assert_raises(RangeError) { writer.wait_writable(seconds) }
      assert_raises(RangeError) { reader.wait(IO::READABLE, seconds) }
    end
  end

  on_streams "a negative timeout", ["pipe"] do |reader, writer|
    heddle_only("Ruby's own answer differs per version") if reference?
    writer.write("x")
    # Plain Ruby polls or raises, depending on its version: either is fine, waiting for ever is not.
    begin
      reader.wait_readable(-1)
    rescue ArgumentError
      nil
    end
  end
end
