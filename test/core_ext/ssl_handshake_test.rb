# frozen_string_literal: true

require_relative "../test_helper"
require "net/http"
require "openssl"
require "support/certificate"
require "support/http_server"
require "timeout"

# A TLS handshake that a cancel or a timeout has ended leaves no socket open, whichever way the client waits.
contract "SSLHandshake" do
  heddle_only "they are not cancelled"

  # All of them say nothing of their own when they are interrupted.
  ways = {
    connect: ->(socket) { socket.connect },
    connect_nonblock: lambda do |socket|
      socket.to_io.wait_readable while socket.connect_nonblock(exception: false) == :wait_readable
    end,
    connect_nonblock_that_raises: lambda do |socket|
      socket.connect_nonblock
    rescue IO::WaitReadable
      socket.to_io.wait_readable && retry
    end
  }.freeze

  ways.each do |name, connect|
    define_method("test_#{name}") do
      assert_closed { |port| connect.call(OpenSSL::SSL::SSLSocket.open("127.0.0.1", port)) }
    end

    define_method("test_#{name}_that_succeeds") do
      server = keep(TestSupport::HttpServer.new(tls: true))
      Heddle.run(backend: backend) do
        socket = nil
        task = Heddle.spawn(isolated: true) do
          socket = open_ssl(server.port).tap(&connect)
          raise IOError
        end
        task.wait

        refute_predicate(socket.to_io, :closed?)
      end
    end
  end

  def test_net_http
    assert_closed do |port|
      client = Net::HTTP.new("127.0.0.1", port)
      client.use_ssl = true
      client.start
    end
  end

  # The block of a run is no task of its own.
  def test_the_block_of_a_run
    port = mute.local_address.ip_port
    assert_raises(Heddle::Cancelled) do
      Heddle.run(backend: backend) do
        Heddle.current_task.cancel
        OpenSSL::SSL::SSLSocket.open("127.0.0.1", port).connect
      end
    end

    assert_empty(open_to(port))
  end

  # What a task rescues may go on: Ruby resumes a handshake.
  def test_a_timeout_that_the_task_rescues
    port = mute.local_address.ip_port
    Heddle.run(backend: backend) do
      socket = open_ssl(port)

      2.times { assert_raises(Timeout::Error) { Timeout.timeout(0.05) { socket.connect } } }

      assert_equal([socket.to_io], open_to(port))
    end
  end

  def test_switched_off
    code = "print(OpenSSL::SSL::SSLSocket.private_method_defined?(:__heddle_connect))"

    assert_equal(%w[true false], [{}, { "HEDDLE_WITHOUT" => "ssl_handshake" }].map do |env|
      assert_script(code, heddle: false, options: %w[-rheddle -ropenssl], env:)
    end)
  end

  private

  def mute = @mute ||= keep(TCPServer.new("127.0.0.1", 0))

  # It is closed at the end of the test.
  def open_ssl(port)
    OpenSSL::SSL::SSLSocket.open("127.0.0.1", port).tap { |socket| keep(socket.to_io) }
  end

  def open_to(port)
    ObjectSpace.each_object(TCPSocket).select { |one| one.instance_of?(TCPSocket) && peer_port(one) == port }
  end

  def peer_port(socket)
    socket.remote_address.ip_port
  rescue IOError, Errno::ENOTCONN
    nil
  end

  def assert_closed
    port = mute.local_address.ip_port
    Heddle.run(backend: backend) do
      GC.disable
      tasks = Array.new(2) do |number|
        Heddle.spawn(isolated: true) { number.zero? ? yield(port) : Timeout.timeout(0.2) { yield(port) } }
      end
      tasks[1].wait
      tasks[0].cancel.wait

      assert_equal([Heddle::Cancelled, Timeout::Error], tasks.map { |task| task.error.class })
      assert_empty(open_to(port))
    ensure
      GC.enable
    end
  end
end
