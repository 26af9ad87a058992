# frozen_string_literal: true

require "resolv"
require_relative "../../test_helper"

# Name resolution answers as the system's resolver does.
contract "AddressResolve" do
  def test_localhost
    reactor do
      assert_includes(Addrinfo.getaddrinfo("localhost", 80).map(&:ip_address), "127.0.0.1")
      assert_equal(["127.0.0.1"], Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM).map(&:ip_address))
      assert_includes(Socket.getaddrinfo("localhost", 80).map { |entry| entry[3] }, "127.0.0.1")
      assert_includes(["127.0.0.1", "::1"], IPSocket.getaddress("localhost"))
      assert_includes(["127.0.0.1", "::1"], Addrinfo.tcp("localhost", 80).ip_address)
    end
  end

  def test_the_same_answer_as_without_a_scheduler
    skip_on_musl("its getaddrinfo leaves out SOCK_RAW, which Ruby adds to the addresses that a scheduler gives it")
    [["localhost", 80], ["localhost", "80"], ["localhost", nil], ["127.0.0.1", 80], ["::1", 80],
     [Socket.gethostname, 80]].each do |name, service|
      plain = lookup(name, service)

      assert_equal(plain, reactor { lookup(name, service) }, "#{name} #{service}")
    end
  end

  def test_numeric_addresses
    reactor do
      assert_equal("127.0.0.1", Addrinfo.tcp("127.0.0.1", 80).ip_address)
      assert_equal("::1", Addrinfo.tcp("::1", 80).ip_address)
      assert_equal("0.0.0.0", Addrinfo.tcp("0.0.0.0", 80).ip_address)
    end
  end

  def test_an_unknown_name
    reactor do
      error = assert_raises(SocketError) { Addrinfo.getaddrinfo("no-such-name.invalid", 80) }

      assert_equal(plain_error.class, error.class)
      assert_raises(SocketError) { Addrinfo.tcp("no-such-name.invalid", 80) }
      assert_raises(SocketError) { IPSocket.getaddress("no-such-name.invalid") }
      assert_raises(SocketError) { TCPSocket.new("no-such-name.invalid", 80) }
    end
  end

  def test_an_unknown_service
    reactor do
      assert_raises(SocketError) { Addrinfo.getaddrinfo("localhost", "no-such-service") }
    end
  end

  # (Ruby refuses a name itself that is longer than the libc allows.)
  def test_an_unusable_name
    reactor do
      assert_raises(SocketError, ArgumentError) { Addrinfo.getaddrinfo("a" * 300, 80) }
      assert_raises(SocketError) { Addrinfo.getaddrinfo("a b", 80) }
    end
  end

  def test_many_at_once
    reactor do
      jobs = Array.new(50) { go { Addrinfo.getaddrinfo("localhost", 80, :INET, :STREAM).map(&:ip_address) } }

      assert_equal([["127.0.0.1"]], jobs.map(&:value).uniq)
    end
  end

  def test_servers_by_name
    reactor do
      server = keep(TCPServer.new("localhost", 0))

      assert_includes(["127.0.0.1", "::1"], server.local_address.ip_address)
      udp = keep(UDPSocket.new)
      udp.bind("localhost", 0)
      udp.connect("localhost", server.addr[1])

      assert_equal("127.0.0.1", udp.remote_address.ip_address)
    end
  end

  def test_an_interrupted_lookup
    heddle_only("the fiber is killed")
    reactor do
      jobs = Array.new(10) { go { Addrinfo.getaddrinfo("localhost", 80) } }
      jobs.each { |job| job.fiber.kill }

      assert_includes(Addrinfo.getaddrinfo("localhost", 80).map(&:ip_address), "127.0.0.1")
    end
  end

  private

  def lookup(name, service)
    Addrinfo.getaddrinfo(name, service).map { |one| [one.inspect_sockaddr, one.socktype, one.protocol] }
  rescue SocketError => e
    e.class
  end

  # What a thread without a scheduler gets.
  def plain_error
    @plain_error ||= Thread.new do
      Addrinfo.getaddrinfo("no-such-name.invalid", 80)
    rescue SocketError => e
      e
    end.value
  end
end
