# frozen_string_literal: true

require_relative "../../test_helper"
require "support/certificate"

# Every way to write waits for room, and the others run meanwhile.
contract "Write", both_ways: true do
  on_streams "write returns the number of bytes" do |reader, writer|
    assert_equal(5, writer.write("hello"))
    assert_equal(4, writer.write("äö"))
    assert_equal(6, writer.write("ab", "cd", "ef"))
    assert_equal("helloäöabcdef".b, reader.read(15).b)
  end

  on_streams "syswrite returns the number of bytes" do |reader, writer|
    assert_equal(5, writer.syswrite("hello"))
    assert_equal("hello", reader.readpartial(100))
  end

  on_streams "puts print and friends" do |reader, writer|
    writer.puts("a", "b")
    writer.print("c", "d\n")
    writer << "e" << "\n"
    writer.printf("%d\n", 5)
    writer.close

    assert_equal("a\nb\ncd\ne\n5\n", reader.read)
  end

  on_streams "an empty write returns zero" do |_reader, writer|
    assert_equal(0, writer.write(""))
  end

  on_streams "write waits until everything fits" do |reader, writer|
    data = Random.new(7).bytes(2_000_000)
    job = go { writer.write(data) }
    settle

    refute_predicate(job, :finished?)
    received = reader.read(data.bytesize)

    assert_equal(data, received.b)
    assert_equal(data.bytesize, job.value)
  end

  on_streams "write of several strings waits until everything fits" do |reader, writer|
    pieces = Array.new(4) { |i| (97 + i).chr * 400_000 }
    job = go { writer.write(*pieces) }
    received = reader.read(1_600_000)

    assert_equal(pieces.join, received)
    assert_equal(1_600_000, job.value)
  end

  # Hazard: the hook's -EAGAIN surfaced as Errno::EAGAIN in syswrite.
  on_streams "syswrite waits for room", TestSupport::Streams::PLAIN do |reader, writer|
    filled = fill(writer)
    job = go { writer.syswrite("y") }
    settle

    refute_predicate(job, :finished?)
    drain(reader, filled)

    assert_equal(1, job.value)
    assert_equal("y", reader.readpartial(10))
  end

  on_streams "a buffered writer keeps its bytes until flush" do |reader, writer|
    writer.sync = false
    writer.write("buffered")

    assert_nil(reader.wait_readable(0.02)) unless writer.is_a?(OpenSSL::SSL::SSLSocket)
    writer.flush

    assert_equal("buffered", reader.readpartial(100))
  end

  on_streams "flush of a full stream waits", TestSupport::Streams::PLAIN do |reader, writer|
    filled = fill(writer)
    writer.sync = false
    writer.write("last")
    job = go { writer.flush }
    settle

    refute_predicate(job, :finished?)
    drain(reader, filled)
    job.value

    assert_equal("last", reader.readpartial(100))
  end

  on_streams "close flushes the buffer", TestSupport::Streams::PLAIN do |reader, writer|
    writer.sync = false
    writer.write("tail")
    writer.close

    assert_equal("tail", reader.read)
  end

  # Ruby 4.0 flushes by one io_write, and loses on close what that leaves over.
  on_streams "close flushes what fits only in pieces", %w[pipe unix] do |reader, writer|
    filled = fill(writer, "f" * 4096)
    filled -= reader.readpartial(4096).bytesize
    writer.sync = false
    writer.write("x" * 8000)
    job = go { writer.close }
    received = reader.read

    assert_equal([filled, 8000], [received.count("f"), received.count("x")])
    job.value
  end

  on_streams "a flush that ends in between goes on where it was", %w[pipe] do |reader, writer|
    filled = fill(writer, "f" * 4096)
    filled -= reader.readpartial(4096).bytesize
    writer.sync = false
    writer.timeout = 0.05
    writer.write("x" * 8000)

    assert_raises(IO::TimeoutError) { writer.flush }
    go { writer.close }
    received = reader.read

    assert_equal([filled, 8000], [received.count("f"), received.count("x")])
  end

  on_streams "two writers do not mix their lines", TestSupport::Streams::PLAIN do |reader, writer|
    lines = %w[a b].map { |char| "#{char * 20_000}\n" }
    lines.each { |line| go { 20.times { writer.write(line) } } }
    received = Array.new(40) { reader.gets }

    assert_equal(lines.sort, received.uniq.sort)
  end

  # The first of two writes expects to find room, the second one to wait.
  on_streams "a string that is changed while its write waits", TestSupport::Streams::PLAIN do |reader, writer|
    written = Array.new(2) do
      filled = fill(writer)
      text = "before" * 1000
      job = go { writer.write(text) }
      settle
      text.replace("after")
      drain(reader, filled)
      [reader.read(6000), job.value]
    end

    assert_equal([["before" * 1000, 6000]] * 2, written)
  end

  on_streams "a write that waits for too long", TestSupport::Streams::PLAIN do |reader, writer|
    errors = Array.new(2) do
      filled = fill(writer)
      writer.timeout = 0.02
      error = assert_raises(IO::TimeoutError) { writer.write("x") }
      writer.timeout = nil
      drain(reader, filled)
      error.class
    end

    assert_equal([IO::TimeoutError] * 2, errors)
    assert_equal(1, writer.write("y"))
    assert_equal("y", reader.read(1))
  end

  on_streams "others run while one writes" do |reader, writer|
    assert_others_run do
      go { others_have_run && reader.read(2_000_000) }
      writer.write("x" * 2_000_000)
    end
  end
end
