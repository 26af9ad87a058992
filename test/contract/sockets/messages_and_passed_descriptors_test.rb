# frozen_string_literal: true

require_relative "../../test_helper"

# recv, send, recvmsg, sendmsg and passed descriptors on stream sockets.
contract "SocketMessages" do
  on_streams "recv waits", TestSupport::Streams::SOCKETS do |one, other|
    job = go { one.recv(100) }
    settle

    refute_predicate(job, :finished?)
    assert_equal(5, other.send("hello", 0))
    assert_equal("hello", job.value)
  end

  on_streams "recv with a buffer", TestSupport::Streams::SOCKETS do |one, other|
    buffer = +"old"
    job = go { one.recv(100, 0, buffer) }
    settle
    other.send("hello", 0)

    assert_same(buffer, job.value)
    assert_equal("hello", buffer)
  end

  on_streams "recv can peek", TestSupport::Streams::SOCKETS do |one, other|
    job = go { [one.recv(3, Socket::MSG_PEEK), one.recv(100)] }
    settle
    other.send("hello", 0)

    assert_equal(%w[hel hello], job.value)
  end

  # Ruby >= 3.3 returns nil at the end of a stream.
  on_streams "recv at the end", TestSupport::Streams::SOCKETS do |one, other|
    job = go { one.recv(10) }
    settle
    other.close

    assert_nil(job.value)
    assert_nil(one.recv_nonblock(10))
  end

  on_streams "recv_nonblock never waits", TestSupport::Streams::SOCKETS do |one, other|
    error = assert_raises(IO::EAGAINWaitReadable) { one.recv_nonblock(10) }

    assert_equal("Resource temporarily unavailable - recvfrom(2) would block", error.message)
    assert_equal(:wait_readable, one.recv_nonblock(10, exception: false))
    other.send("x", 0)
    one.wait_readable(5)

    assert_equal("x", one.recv_nonblock(10))
  end

  on_streams "recvmsg and sendmsg", TestSupport::Streams::SOCKETS do |one, other|
    job = go { one.recvmsg(100) }
    settle

    refute_predicate(job, :finished?)
    assert_equal(5, other.sendmsg("hello"))
    assert_equal("hello", job.value.first)
  end

  on_streams "recvmsg_nonblock never waits", TestSupport::Streams::SOCKETS do |one, _other|
    error = assert_raises(IO::EAGAINWaitReadable) { one.recvmsg_nonblock(10) }

    assert_equal("Resource temporarily unavailable - recvmsg(2) would block", error.message)
    assert_equal(:wait_readable, one.recvmsg_nonblock(10, exception: false))
  end

  on_streams "send waits for room", TestSupport::Streams::SOCKETS do |one, other|
    filled = fill(one)
    job = go { one.send("y", 0) }
    settle

    refute_predicate(job, :finished?)
    drain(other, filled)

    assert_equal(1, job.value)
  end

  on_streams "sendmsg waits for room", TestSupport::Streams::SOCKETS do |one, other|
    filled = fill(one)

    assert_raises(IO::EAGAINWaitWritable) { one.sendmsg_nonblock("y") }
    assert_equal(:wait_writable, one.sendmsg_nonblock("y", exception: false))
    job = go { one.sendmsg("y") }
    settle

    refute_predicate(job, :finished?)
    drain(other, filled)

    assert_equal(1, job.value)
  end

  def test_a_descriptor_is_passed
    reactor do
      one, other = socket_pair
      reader, writer = pipe
      job = go { keep(one.recv_io) }
      settle

      refute_predicate(job, :finished?)
      other.send_io(writer)
      job.value.syswrite("through the copy")

      assert_equal("through the copy", reader.readpartial(100))
    end
  end

  def test_descriptors_in_an_ancillary_message
    reactor do
      one, other = socket_pair
      reader, = pipe
      job = go { one.recvmsg(100, scm_rights: true) }
      settle
      other.sendmsg("x", 0, nil, Socket::AncillaryData.unix_rights(reader))
      control = job.value.last
      control.unix_rights.each { |io| keep(io) }

      assert_equal(1, control.unix_rights.size)
    end
  end
end
