# frozen_string_literal: true

# bin/test: takes 20 s, 0.1 of a core

require "stringio"
require "tempfile"

require_relative "../../test_helper"

# IO#timeout bounds each wait on the IO; afterwards it can be used as before.
contract "IOTimeout" do
  # Hazard: ignored, or honoured with Timeout::Error.
  reads = {
    "read" => ->(io) { io.read(1) },
    "readpartial" => ->(io) { io.readpartial(10) },
    "sysread" => ->(io) { io.sysread(10) },
    "gets" => ->(io) { io.gets },
    "getc" => ->(io) { io.getc },
    "eof" => ->(io) { io.eof? }
  }

  TestSupport::Streams::PLAIN.each do |kind|
    reads.each do |name, operation|
      define_method("test_#{name}_on_#{kind}") do
        heddle_only("Ruby forgets the timeout in #{name}") if %w[readpartial sysread].include?(name)
        reactor do
          reader, writer = stream_pair(kind)
          reader.timeout = 0.05
          taken = elapsed { assert_raises(IO::TimeoutError) { operation.call(reader) } }

          assert_operator(taken, :>=, 0.05)
          assert_operator(taken, :<, 25)
          writer.write("after\n")

          assert_equal("after\n", reader.gets)
        end
      end
    end
  end

  # For Ruby false is no timeout.
  on_streams "false", TestSupport::Streams::PLAIN do |reader, writer|
    reader.timeout = writer.timeout = false
    job = go { [reader.gets, reader.readpartial(4), reader.wait_readable && reader.read.size] }
    settle
    writer.write("line\n") && settle
    writer.write("part") && settle
    writer.write("x" * 500_000)
    writer.close

    assert_equal(["line\n", "part", 500_000], job.value)
  end

  on_streams "copy_stream without a timeout", TestSupport::Streams::PLAIN do |reader, writer|
    writer.timeout = false
    job = go { reader.read }
    IO.copy_stream(StringIO.new("x" * 500_000), writer)
    writer.close

    assert_equal(500_000, job.value.size)
  end

  on_streams "write", TestSupport::Streams::PLAIN do |reader, writer|
    writer.timeout = 0.05
    assert_raises(IO::TimeoutError) { writer.write("x" * 5_000_000) }
    writer.timeout = nil
    job = go { nil until reader.readpartial(65_536).end_with?("y") }

    assert_equal(10_000, writer.write("y" * 10_000))
    job.value
  end

  on_streams "copy_stream", TestSupport::Streams::PLAIN do |reader, writer|
    heddle_only("Ruby waits for ever")
    Tempfile.create do |file|
      file.write("x" * 5_000_000)
      file.close
      writer.timeout = 0.05
      assert_raises(IO::TimeoutError) { IO.copy_stream(file.path, writer) }
      writer.timeout = nil
      job = go { nil until reader.readpartial(65_536).end_with?("y") }
      writer.write("y")
      job.value
    end
  end

  on_streams "syswrite", TestSupport::Streams::PLAIN do |reader, writer|
    filled = fill(writer)
    writer.timeout = 0.05
    assert_raises(IO::TimeoutError) { writer.syswrite("x") }
    drain(reader, filled)

    assert_equal(1, writer.syswrite("x"))
  end

  on_streams "data in time", TestSupport::Streams::PLAIN do |reader, writer|
    reader.timeout = 20
    job = go { reader.gets }
    settle
    writer.puts("line")

    assert_equal("line\n", job.value)
  end

  on_streams "wait_readable answers nil", TestSupport::Streams::PLAIN do |reader, _writer|
    reader.timeout = 0.03

    assert_nil(reader.wait_readable(0.05))
    assert_nil(reader.wait_readable(0))
    assert_nil(reader.wait_readable)
    assert_nil(reader.wait(IO::READABLE))
  end

  on_streams "recv", TestSupport::Streams::SOCKETS do |one, other|
    old_ruby
    one.timeout = 0.05
    assert_raises(IO::TimeoutError) { one.recv(10) }
    other.write("x")

    assert_equal("x", one.recv(10))
  end

  on_streams "nonblock does not mind", TestSupport::Streams::PLAIN do |reader, _writer|
    reader.timeout = 0.05

    assert_equal(:wait_readable, reader.read_nonblock(10, exception: false))
  end

  # Each wait is bounded, not the whole: a dripping peer is served.
  on_streams "a drip", TestSupport::Streams::PLAIN do |_reader, _writer, kind|
    in_time do |seconds|
      reader, writer = stream_pair(kind)
      reader.timeout = 3 * seconds
      go { 6.times { writer.write(".") && sleep(seconds) } && writer.write("\n") }
      reader.gets == "......\n"
    rescue IO::TimeoutError
      false
    end
  end

  on_streams "one after the other", TestSupport::Streams::PLAIN do |reader, writer|
    reader.timeout = 0.02
    5.times do
      assert_raises(IO::TimeoutError) { reader.getc }
      writer.write("x")

      assert_equal("x", reader.readpartial(1))
    end
  end

  def test_a_timeout_that_is_over_is_forgotten
    reactor do
      reader, writer = pipe
      reader.timeout = 0.1
      job = go { [reader.readpartial(1), (reader.timeout = nil), reader.readpartial(1)] }
      settle
      writer.write("a")
      sleep(0.2)

      refute_predicate(job, :finished?)
      writer.write("b")

      assert_equal(["a", nil, "b"], job.value)
    end
  end

  def test_accept
    old_ruby
    reactor do
      server = tcp_server
      server.timeout = 0.05
      assert_raises(IO::TimeoutError) { server.accept }
      keep(TCPSocket.new("127.0.0.1", server.addr[1]))

      assert_instance_of(TCPSocket, keep(server.accept))
    end
  end

  def test_connect
    heddle_only("Ruby 3.3 waits for ever") unless ruby_at_least?("3.4")
    reactor do
      address = silent_server.local_address
      socket = keep(Socket.new(:INET, :STREAM))
      socket.timeout = 0.05

      assert_raises(IO::TimeoutError) { socket.connect(address) }
    end
  end

  def test_udp
    old_ruby
    reactor do
      socket = keep(UDPSocket.new)
      socket.bind("127.0.0.1", 0)
      socket.timeout = 0.05
      assert_raises(IO::TimeoutError) { socket.recvfrom(10) }
    end
  end

  def test_ssl
    old_ruby
    reactor do
      one, other = ssl_pair
      one.to_io.timeout = 0.05
      assert_raises(IO::TimeoutError) { one.readpartial(10) }
      one.to_io.timeout = nil
      other.write("x")

      assert_equal("x", one.readpartial(1))
    end
  end

  def test_others_run
    reactor do
      reader, = pipe
      reader.timeout = 0.15
      assert_others_run { assert_raises(IO::TimeoutError) { reader.getc } }
    end
  end

  private

  def old_ruby
    heddle_only("Ruby 3.3 raises EAGAIN here, or waits for ever") unless ruby_at_least?("3.4")
  end
end
