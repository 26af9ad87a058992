# frozen_string_literal: true

require_relative "../test_helper"

# Socket#connect waits for the socket itself, on Ruby 3.3, too.
contract "SocketConnect" do
  def test_a_close_ends_it
    heddle_only("Ruby's threads wait on for the answer") unless ruby_at_least?("4.0")
    reactor do
      address = silent_server.local_address
      socket = keep(Socket.new(:INET, :STREAM))
      job = go { socket.connect(address) }
      settle
      socket.close

      assert_match(/closed/, assert_raises(IOError) { job.value }.message)
    end
  end

  def test_refused
    reactor do
      address = Addrinfo.tcp("127.0.0.1", 0)
      server = Socket.new(:INET, :STREAM)
      server.bind(address)
      address = server.local_address
      server.close
      error = assert_raises(Errno::ECONNREFUSED) { keep(Socket.new(:INET, :STREAM)).connect(address) }

      assert_equal("Connection refused - connect(2) for #{address.inspect_sockaddr}", error.message)
    end
  end

  def test_connected
    reactor do
      server = tcp_server
      socket = keep(Socket.new(:INET, :STREAM))

      assert_equal(0, socket.connect(server.local_address))
      keep(server.accept).write("x")

      assert_equal("x", socket.read(1))
    end
  end

  def test_connected_already
    reactor do
      unix = keep(UNIXServer.new(File.join(tempdir, "socket")))
      [tcp_server, unix].map(&:local_address).each do |address|
        socket = keep(Socket.new(address.afamily, :STREAM))
        socket.connect(address)
        # (Linux says once more that it has connected.)
        error = assert_raises(Errno::EISCONN) { 2.times { socket.connect(address) } }

        assert_match(/\A#{Errno::EISCONN.new.message} - connect\(2\) for /, error.message)
      end
    end
  end

  def test_bad_address
    reactor do
      assert_raises(TypeError) { keep(Socket.new(:INET, :STREAM)).connect(1) }
    end
  end
end
