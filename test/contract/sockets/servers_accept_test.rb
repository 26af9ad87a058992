# frozen_string_literal: true

require_relative "../../test_helper"
require "io/nonblock"

# Servers: accept in its forms.
contract "Accept", both_ways: true do
  def unix_path
    File.join(tempdir, "socket")
  end

  def test_tcp_server_accept_waits
    reactor do
      server = tcp_server
      job = go { keep(server.accept) }
      settle

      refute_predicate(job, :finished?)
      client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))

      assert_instance_of(TCPSocket, job.value)
      client.write("hello")

      assert_equal("hello", job.value.readpartial(10))
    end
  end

  def test_unix_server_accept_waits
    reactor do
      path = unix_path
      server = keep(UNIXServer.new(path))
      job = go { keep(server.accept) }
      settle

      refute_predicate(job, :finished?)
      client = keep(UNIXSocket.new(path))

      assert_instance_of(UNIXSocket, job.value)
      job.value.write("hello")

      assert_equal("hello", client.readpartial(10))
    end
  end

  def test_socket_accept_returns_socket_and_address
    reactor do
      server = keep(Socket.new(:INET, :STREAM))
      server.bind(Addrinfo.tcp("127.0.0.1", 0))
      server.listen(5)
      job = go { server.accept }
      settle

      refute_predicate(job, :finished?)
      client = keep(Socket.tcp("127.0.0.1", server.local_address.ip_port))
      socket, address = job.value
      keep(socket)

      assert_instance_of(Socket, socket)
      assert_equal(client.local_address.ip_port, address.ip_port)
    end
  end

  def test_sysaccept_waits_for_a_descriptor
    reactor do
      server = tcp_server
      job = go { server.sysaccept }
      settle
      keep(TCPSocket.new("127.0.0.1", server.addr[1]))

      assert_kind_of(Integer, job.value)
      keep(IO.for_fd(job.value))
    end
  end

  def test_accept_nonblock_never_waits
    reactor do
      server = tcp_server
      error = assert_raises(IO::EAGAINWaitReadable) { server.accept_nonblock }

      assert_kind_of(IO::WaitReadable, error)
      assert_equal("Resource temporarily unavailable - accept(2) would block", error.message)
      assert_equal(:wait_readable, server.accept_nonblock(exception: false))
      keep(TCPSocket.new("127.0.0.1", server.addr[1]))
      server.wait_readable(5)

      assert_instance_of(TCPSocket, keep(server.accept_nonblock))
    end
  end

  def test_accept_nonblock_of_the_other_servers
    reactor do
      unix = keep(UNIXServer.new(unix_path))
      plain = keep(Socket.new(:INET, :STREAM))
      plain.bind(Addrinfo.tcp("127.0.0.1", 0))
      plain.listen(5)
      [unix, plain].each do |server|
        assert_raises(IO::EAGAINWaitReadable) { server.accept_nonblock }
        assert_equal(:wait_readable, server.accept_nonblock(exception: false))
      end
    end
  end

  # One connection wakes one acceptor for good: the others go on waiting.
  def test_several_acceptors_on_one_server
    reactor do
      server = tcp_server
      jobs = Array.new(5) { go { keep(server.accept) } }
      settle
      5.times do |i|
        keep(TCPSocket.new("127.0.0.1", server.addr[1]))
        wait_until { jobs.count(&:finished?) == i + 1 }
        settle

        assert_equal(i + 1, jobs.count(&:finished?))
      end
      jobs.each { |job| assert_instance_of(TCPSocket, job.value) }
    end
  end

  # One connection is for one of them. The other one waits on, and holds nobody up.
  def test_two_acceptors_on_a_server_in_blocking_mode
    heddle_only("the one that has no connection ends with the test")
    reactor do
      server = tcp_server.tap { |io| io.nonblock = false }
      jobs = Array.new(2) { go { keep(server.accept) } }
      settle
      keep(TCPSocket.new("127.0.0.1", server.addr[1]))
      wait_until { jobs.any?(&:finished?) }
      settle

      assert_equal(1, jobs.count(&:finished?))
      keep(TCPSocket.new("127.0.0.1", server.addr[1]))

      assert_equal([TCPSocket] * 2, jobs.map { |job| job.value.class })
    end
  end

  def test_a_hundred_connections_are_served
    reactor do
      server = tcp_server
      go do
        100.times do
          socket = server.accept
          go { socket.write(socket.gets.upcase) && socket.close }
        end
      end
      clients = Array.new(100) do |i|
        go do
          TCPSocket.open("127.0.0.1", server.addr[1]) { |socket| socket.puts("client #{i}") || socket.read }
        end
      end

      assert_equal(Array.new(100) { |i| "CLIENT #{i}\n" }, clients.map(&:value))
    end
  end

  def test_accepted_sockets_are_as_rubys_own
    reactor do
      server = tcp_server
      job = go { keep(server.accept) }
      keep(TCPSocket.new("127.0.0.1", server.addr[1]))
      socket = job.value

      assert_predicate(socket, :close_on_exec?)
      assert_predicate(socket, :sync)
      assert_predicate(socket, :binmode?)
      assert_equal(Encoding::ASCII_8BIT, socket.external_encoding || Encoding::ASCII_8BIT)
    end
  end

  def test_others_run_while_one_accepts
    reactor do
      server = tcp_server
      assert_others_run do
        go { others_have_run && keep(TCPSocket.new("127.0.0.1", server.addr[1])) }
        keep(server.accept)
      end
    end
  end
end
