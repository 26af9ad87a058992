# frozen_string_literal: true

require_relative "../../test_helper"

# Clients: connect in its forms.
contract "Connect" do
  def test_tcp_socket_new
    reactor do
      server = tcp_server
      client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))

      assert_equal(server.addr[1], client.peeraddr[1])
      assert_predicate(client, :sync)
      assert_predicate(client, :close_on_exec?)
    end
  end

  def test_tcp_socket_open_with_a_block
    reactor do
      server = tcp_server
      inner = nil
      value = TCPSocket.open("127.0.0.1", server.addr[1]) { |socket| (inner = socket) && :value }

      assert_equal(:value, value)
      assert_predicate(inner, :closed?)
    end
  end

  def test_tcp_socket_by_name
    reactor do
      server = tcp_server
      client = keep(TCPSocket.new("localhost", server.addr[1]))
      client.write("x")

      assert_equal("x", keep(server.accept).readpartial(1))
    end
  end

  def test_socket_tcp_with_a_block
    reactor do
      server = tcp_server
      value = Socket.tcp("127.0.0.1", server.addr[1]) { |socket| socket.remote_address.ip_port }

      assert_equal(server.addr[1], value)
    end
  end

  def test_socket_tcp_by_name
    reactor do
      server = tcp_server
      client = keep(Socket.tcp("localhost", server.addr[1]))

      assert_equal(server.addr[1], client.remote_address.ip_port)
    end
  end

  def test_tcp_socket_with_local_address
    reactor do
      server = tcp_server
      client = keep(TCPSocket.new("127.0.0.1", server.addr[1], "127.0.0.2", 0))

      assert_equal("127.0.0.2", client.local_address.ip_address)
    end
  end

  def test_socket_connect
    reactor do
      server = tcp_server
      client = keep(Socket.new(:INET, :STREAM))

      assert_equal(0, client.connect(server.local_address))
    end
  end

  def test_unix_socket
    reactor do
      path = File.join(tempdir, "socket")
      server = keep(UNIXServer.new(path))
      client = keep(UNIXSocket.new(path))
      client.write("x")

      assert_equal("x", keep(server.accept).readpartial(1))
      assert_raises(Errno::ENOENT) { UNIXSocket.new("#{path}.not") }
    end
  end

  def test_refused
    needs_pending_errors
    port = free_port
    reactor do
      [
        -> { TCPSocket.new("127.0.0.1", port) },
        -> { TCPSocket.new("localhost", port) },
        -> { Socket.tcp("127.0.0.1", port) },
        -> { Socket.new(:INET, :STREAM).then { |socket| keep(socket).connect(Addrinfo.tcp("127.0.0.1", port)) } }
      ].each { |attempt| assert_raises(Errno::ECONNREFUSED, &attempt) }
    end
  end

  def test_the_message_of_a_refusal_names_the_address
    port = free_port
    reactor do
      error = assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }

      assert_match(/127\.0\.0\.1.*#{port}/, error.message)
    end
  end

  def test_connect_nonblock
    reactor do
      server = silent_server
      client = keep(Socket.new(:INET, :STREAM))
      error = assert_raises(IO::EINPROGRESSWaitWritable) { client.connect_nonblock(server.local_address) }

      assert_equal("#{Errno::EINPROGRESS.new.message} - connect(2) would block", error.message)
      other = keep(Socket.new(:INET, :STREAM))

      assert_equal(:wait_writable, other.connect_nonblock(server.local_address, exception: false))
      assert_nil(client.wait_writable(0.03))
    end
  end

  def test_connect_nonblock_then_wait_writable
    reactor do
      server = tcp_server
      client = keep(Socket.new(:INET, :STREAM))
      client.connect_nonblock(server.local_address, exception: false)

      assert_same(client, client.wait_writable(10))
      assert_includes([0, nil], client.connect_nonblock(server.local_address, exception: false))
    end
  end

  def test_connect_nonblock_refused
    needs_pending_errors
    port = free_port
    reactor do
      client = keep(Socket.new(:INET, :STREAM))
      connect = -> { client.connect_nonblock(Addrinfo.tcp("127.0.0.1", port), exception: false) }
      assert_raises(Errno::ECONNREFUSED) { 2.times { connect.call && client.wait_writable(10) } }
    end
  end

  def test_connect_timeout
    reactor do
      server = silent_server
      port = server.local_address.ip_port
      taken = elapsed do
        assert_raises(Errno::ETIMEDOUT, IO::TimeoutError) { Socket.tcp("127.0.0.1", port, connect_timeout: 0.2) }
        assert_raises(Errno::ETIMEDOUT, IO::TimeoutError) do
          TCPSocket.new("127.0.0.1", port, connect_timeout: 0.2)
        end
      end

      assert_operator(taken, :<, 50)
    end
  end

  # A connection to this machine is there as soon as it is asked for. So the request of a task goes out before the next
  # task begins.
  def test_a_connect_to_this_machine_does_not_wait
    heddle_only("others let the task wait")
    ENV["HEDDLE_CALLS"] = "direct" # else the way depends on the machine; teardown takes it back
    reactor do
      port = tcp_server.addr[1]
      at_once = Array.new(20) do
        connected = nil
        Fiber.schedule { connected = keep(TCPSocket.new("127.0.0.1", port)) }
        connected
      end

      refute_empty(at_once.compact) # a busy kernel may take a moment for some of them
    end
  end

  def test_a_timeout_that_is_too_large
    heddle_only("Ruby 3.4 and newer leave the sockets open")
    reactor do
      port = tcp_server.addr[1]
      options = RUBY_VERSION < "4.0" ? %i[connect_timeout] : %i[connect_timeout open_timeout]
      options.product(["127.0.0.1", "localhost"], [Float::INFINITY, 1e30]).each do |option, host, seconds|
        assert_raises(RangeError) { TCPSocket.new(host, port, option => seconds) }
        assert_raises(RangeError) { Socket.tcp(host, port, option => seconds) }
      end
      next keep(TCPSocket.new("localhost", port, resolv_timeout: Float::INFINITY)) if RUBY_VERSION < "3.4"

      assert_raises(RangeError) { TCPSocket.new("localhost", port, resolv_timeout: Float::INFINITY) }
    end
  end

  def test_others_run_while_one_connects
    reactor do
      server = silent_server
      assert_others_run do
        assert_raises(Errno::ETIMEDOUT, IO::TimeoutError) do
          TCPSocket.new("127.0.0.1", server.local_address.ip_port, connect_timeout: 0.2)
        end
      end
    end
  end

  def test_many_connect_at_the_same_time
    reactor do
      server = tcp_server
      server.listen(200)
      accepted = go { Array.new(100) { keep(server.accept) } }
      jobs = Array.new(100) { go { keep(TCPSocket.new("127.0.0.1", server.addr[1])) } }
      ports = jobs.map { |job| job.value.local_address.ip_port }

      assert_equal(ports.sort, accepted.value.map { |socket| socket.remote_address.ip_port }.sort)
    end
  end
end
