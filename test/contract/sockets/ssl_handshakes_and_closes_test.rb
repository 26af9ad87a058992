# frozen_string_literal: true

require_relative "../../test_helper"
require "support/certificate"

# OpenSSL::SSL: the handshake and what is not the same as with plain streams (see the matrix for the rest).
contract "Ssl" do
  def contexts = [TestSupport::Certificate.server_context, TestSupport::Certificate.client_context]

  # SSL sockets over a TCP connection, without their handshake.
  def raw_pair
    server, client = tcp_pair
    contexts.zip([server, client]).map do |context, socket|
      keep(OpenSSL::SSL::SSLSocket.new(socket, context)).tap { |ssl| ssl.sync_close = true }
    end
  end

  def test_handshake_waits_on_both_sides
    reactor do
      server, client = raw_pair
      accepting = go { server.accept }
      settle

      refute_predicate(accepting, :finished?)
      client.hostname = "localhost"
      client.connect
      client.post_connection_check("localhost")

      assert_same(server, accepting.value)
      assert_equal(client.cipher, server.cipher)
    end
  end

  def test_handshake_nonblock
    reactor do
      server, client = raw_pair

      assert_raises(OpenSSL::SSL::SSLErrorWaitReadable) { server.accept_nonblock }
      assert_equal(:wait_readable, server.accept_nonblock(exception: false))
      assert_equal(:wait_readable, client.connect_nonblock(exception: false))
      accepting = go { server.to_io.wait_readable while server.accept_nonblock(exception: false) == :wait_readable }
      client.to_io.wait_readable while client.connect_nonblock(exception: false) == :wait_readable
      accepting.value

      assert_match(/\ASSLOK/, client.state)
    end
  end

  def test_an_untrusted_certificate_is_refused
    reactor do
      server, client = tcp_pair
      server = keep(OpenSSL::SSL::SSLSocket.new(server, TestSupport::Certificate.server_context))
      client = keep(OpenSSL::SSL::SSLSocket.new(client, TestSupport::Certificate.client_context(verify: false)))
      accepting = go { server.accept }

      assert_raises(OpenSSL::SSL::SSLError) { client.connect }
      assert_kind_of(OpenSSL::SSL::SSLError, accepting.failure)
    end
  end

  def test_the_peer_vanishes_in_the_handshake
    reactor do
      server, client = raw_pair
      accepting = go { server.accept }
      settle
      client.to_io.close

      refute_nil(accepting.failure)
      assert_kind_of(StandardError, accepting.failure)
    end
  end

  def test_ssl_server_accept
    reactor do
      server = tcp_server
      ssl = OpenSSL::SSL::SSLServer.new(server, TestSupport::Certificate.server_context)
      echo = go do
        socket = keep(ssl.accept)
        socket.puts(socket.gets.upcase)
        socket.close
      end
      client = keep(OpenSSL::SSL::SSLSocket.open("127.0.0.1", server.addr[1], context: contexts.last))
      client.sync_close = true
      client.connect
      client.puts("hello")

      assert_equal("HELLO\n", client.gets)
      assert_nil(client.gets)
      echo.value
    end
  end

  def test_both_directions_at_once
    reactor do
      one, other = ssl_pair
      data = Random.new(3).bytes(1_000_000)
      senders = [one, other].map { |socket| go { socket.write(data) } }
      readers = [one, other].map { |socket| go { socket.read(data.bytesize) } }

      assert_equal([data.bytesize] * 2, senders.map(&:value))
      readers.each { |job| assert_equal(data, job.value.b) }
    end
  end

  def test_others_run_during_a_handshake
    reactor do
      server, client = raw_pair
      assert_others_run do
        go { others_have_run && client.connect }
        server.accept
      end
    end
  end

  def test_many_handshakes_at_once
    reactor do
      pairs = Array.new(10) { raw_pair }
      jobs = pairs.flat_map { |server, client| [go { server.accept }, go { client.connect }] }
      jobs.each(&:value)
      pairs.each do |server, client|
        server.puts("hello")

        assert_equal("hello\n", client.gets)
      end
    end
  end
end
