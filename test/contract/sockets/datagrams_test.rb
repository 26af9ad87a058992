# frozen_string_literal: true

require_relative "../../test_helper"

# UDPSocket and datagram sockets of the UNIX kind.
contract "Datagram", both_ways: true do
  # Two UDP sockets, each connected to the other.
  def udp_pair
    Array.new(2) { keep(UDPSocket.new).tap { |socket| socket.bind("127.0.0.1", 0) } }.tap do |one, other|
      one.connect("127.0.0.1", other.addr[1])
      other.connect("127.0.0.1", one.addr[1])
    end
  end

  def udp_socket
    keep(UDPSocket.new).tap { |socket| socket.bind("127.0.0.1", 0) }
  end

  def test_recvfrom_waits
    reactor do
      receiver = udp_socket
      sender = udp_socket
      job = go { receiver.recvfrom(100) }
      settle

      refute_predicate(job, :finished?)
      assert_equal(5, sender.send("hello", 0, "127.0.0.1", receiver.addr[1]))
      data, address = job.value

      assert_equal("hello", data)
      assert_equal(["AF_INET", sender.addr[1], "127.0.0.1", "127.0.0.1"], address)
    end
  end

  def test_recv_waits
    reactor do
      one, other = udp_pair
      job = go { one.recv(100) }
      settle

      refute_predicate(job, :finished?)
      assert_equal(5, other.send("hello", 0))
      assert_equal("hello", job.value)
    end
  end

  def test_recvmsg_and_sendmsg
    reactor do
      one, other = udp_pair
      job = go { one.recvmsg }
      settle

      refute_predicate(job, :finished?)
      assert_equal(5, other.sendmsg("hello"))
      data, address, = job.value

      assert_equal("hello", data)
      assert_equal(other.addr[1], address.ip_port)
    end
  end

  def test_nonblock_never_waits
    reactor do
      one, other = udp_pair

      assert_raises(IO::EAGAINWaitReadable) { one.recvfrom_nonblock(10) }
      assert_raises(IO::EAGAINWaitReadable) { one.recv_nonblock(10) }
      assert_raises(IO::EAGAINWaitReadable) { one.recvmsg_nonblock(10) }
      assert_equal(:wait_readable, one.recvfrom_nonblock(10, exception: false))
      assert_equal(:wait_readable, one.recv_nonblock(10, exception: false))
      assert_equal(:wait_readable, one.recvmsg_nonblock(10, exception: false))
      assert_equal(1, other.sendmsg_nonblock("x"))
      assert_same(one, one.wait_readable(5))
      assert_equal("x", one.recvfrom_nonblock(10).first)
    end
  end

  def test_each_datagram_is_one_read
    reactor do
      one, other = udp_pair
      job = go { Array.new(3) { one.recv(100) } }
      %w[a bb ccc].each { |text| other.send(text, 0) }

      assert_equal(%w[a bb ccc], job.value)
    end
  end

  def test_read_and_write_of_a_connected_socket
    reactor do
      one, other = udp_pair
      job = go { one.readpartial(100) }
      settle
      other.write("hello")

      assert_equal("hello", job.value)
    end
  end

  def test_an_empty_datagram
    reactor do
      receiver = udp_socket
      sender = udp_socket
      job = go { receiver.recvfrom(100) }
      settle
      sender.send("", 0, "127.0.0.1", receiver.addr[1])

      assert_equal("", job.value.first)
    end
  end

  def test_refused
    needs_pending_errors
    port = free_port
    reactor do
      socket = keep(UDPSocket.new)
      socket.connect("127.0.0.1", port)
      job = go { socket.recv(10) }
      settle
      begin
        socket.send("x", 0)
      rescue Errno::ECONNREFUSED
        nil
      end

      assert_instance_of(Errno::ECONNREFUSED, job.failure)
    end
  end

  def test_unix_datagrams
    reactor do
      one, other = UNIXSocket.pair(:DGRAM).each { |socket| keep(socket) }
      job = go { one.recv(100) }
      settle
      other.send("hello", 0)

      assert_equal("hello", job.value)
      filled = 0
      filled += 1 while other.sendmsg_nonblock("x", exception: false) != :wait_writable
      parked = go { other.send("last", 0) }
      settle

      refute_predicate(parked, :finished?)
      received = Array.new(filled + 1) { one.recv(100) }

      assert_equal(4, parked.value)
      assert_equal("last", received.last)
    end
  end

  def test_unix_recvfrom
    reactor do
      one, other = UNIXSocket.pair(:DGRAM).each { |socket| keep(socket) }
      job = go { one.recvfrom(100) }
      settle
      other.send("hello", 0)

      assert_equal("hello", job.value.first)
    end
  end

  def test_ping_pong
    reactor do
      one, other = udp_pair
      echo = go { 200.times { other.send(other.recv(100), 0) } }
      200.times do |i|
        one.send("ping #{i}", 0)

        assert_equal("ping #{i}", one.recv(100))
      end
      echo.value
    end
  end

  def test_others_run_while_one_receives
    reactor do
      one, other = udp_pair
      assert_others_run do
        go { others_have_run && other.send("x", 0) }
        one.recvfrom(10)
      end
    end
  end

  # What a task could not take is never put where the next datagram would be added to it, or where recvmsg refuses it.
  def test_a_recv_that_ends_early_leaves_the_datagrams_apart
    heddle_only("Fiber#raise at a task that is ready")
    received = []
    sent = Array.new(60) { |number| "datagram #{number}" }
    reactor do
      there = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
      here = UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", there.local_address.ip_port) }
      sent.each_with_index do |text, number|
        fiber = nil
        task = Heddle.spawn(isolated: true) do
          fiber = Fiber.current
          received << there.recv(100)
        rescue StopIteration
          nil
        end
        sleep(0)
        here.send(text, 0)
        (number % 3).times { sleep(0) }
        fiber.raise(StopIteration) if fiber.alive?
        task.wait
        received << there.recvmsg.first if received.size <= number
      end
    ensure
      [here, there].each(&:close)
    end

    assert_equal(sent, received)
  end
end
