# frozen_string_literal: true

require_relative "../test_helper"

# Sockets in blocking mode (handed on by a supervisor, TCPServer.for_fd) in the operations for which Ruby has no hook.
contract "BlockingSocket" do
  def test_recv_on_a_blocking_socket
    reactor do
      one, other = socket_pair
      blocking_mode(one)
      value = assert_others_run do
        go { sleep(0.12) && other.write("hello") }
        one.recv(10)
      end

      assert_equal("hello", value)
    end
  end

  def test_accept_on_a_blocking_server
    reactor do
      server = blocking_mode(tcp_server)
      assert_others_run do
        go { sleep(0.12) && keep(TCPSocket.new("127.0.0.1", server.addr[1])) }

        assert_instance_of(TCPSocket, keep(server.accept))
      end
    end
  end

  def test_recvfrom_on_a_blocking_udp_socket
    reactor do
      socket = keep(UDPSocket.new)
      socket.bind("127.0.0.1", 0)
      blocking_mode(socket)
      data, = assert_others_run do
        go { sleep(0.12) && UDPSocket.open { |sender| sender.send("hello", 0, "127.0.0.1", socket.addr[1]) } }
        socket.recvfrom(10)
      end

      assert_equal("hello", data)
    end
  end

  def test_send_on_a_blocking_socket
    reactor do
      one, other = socket_pair
      filled = fill(one)
      blocking_mode(one)
      assert_others_run do
        go { sleep(0.12) && drain(other, filled) }
        one.send("x", 0)
      end
    end
  end

  def test_connect_of_a_blocking_socket
    reactor do
      server = tcp_server
      client = blocking_mode(keep(Socket.new(:INET, :STREAM)))

      assert_equal(0, client.connect(server.local_address))
    end
  end
end
