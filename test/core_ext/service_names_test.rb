# frozen_string_literal: true

require_relative "../test_helper"

# The name of a service ("http") is as good as its port everywhere, with the name of a host and with an address.
contract "ServiceNames" do
  unknown = /\Agetaddrinfo.*: (Servname not supported|Unrecognized service)/ # as glibc and musl say it
  define_method(:unknown) { unknown }

  def needs_numbers_of_any_form
    skip_on_musl("its getaddrinfo takes no port above 65535, and none with a sign")
  end

  def setup
    super
    @service, @port = %w[http ssh domain smtp].filter_map { |name| service(name) }.first
    skip("this machine knows no names of services") unless @service
  end

  def test_addrinfo
    ["localhost", "127.0.0.1"].each do |host|
      reactor do
        ports = Addrinfo.getaddrinfo(host, @service, nil, :STREAM).map(&:ip_port)

        assert_equal([@port], ports.uniq)
        assert_equal(@port, Addrinfo.tcp(host, @service).ip_port)
        assert_equal([@port], Socket.getaddrinfo(host, @service, nil, :STREAM).map { |entry| entry[1] }.uniq)
      end
    end
  end

  def test_packed_addresses
    reactor do
      assert_equal(Socket.pack_sockaddr_in(@port, "127.0.0.1"), Socket.pack_sockaddr_in(@service, "localhost"))
      assert_equal([@port, "127.0.0.1"], Socket.unpack_sockaddr_in(Socket.sockaddr_in(@service, "127.0.0.1")))
    end
  end

  # Whether somebody listens there or not, it gets as far as that.
  def test_tcp_socket
    reactor do
      [["127.0.0.1", @service], ["localhost", @service], ["localhost", @service, "127.0.0.1", nil]].each do |arguments|
        TCPSocket.new(*arguments).close
      rescue SystemCallError => e
        refute_kind_of(SocketError, e)
      end
    end
  end

  def test_tcp_server
    reactor do
      TCPServer.new("localhost", @service).close
    rescue SystemCallError => e
      refute_kind_of(SocketError, e)
    end
  end

  def test_udp_socket
    service, port = service("domain", "udp")
    skip("this machine does not know the service domain") unless service
    reactor do
      socket = keep(UDPSocket.new)
      socket.connect("localhost", service)

      assert_equal(port, socket.remote_address.ip_port)
      assert_equal(1, keep(UDPSocket.new).send("x", 0, "localhost", service))
    end
  end

  # A service may be known for one type of socket only (ssh for TCP).
  def test_the_types_of_sockets
    only_tcp, port = %w[http ssh smtp pop3].filter_map { |name| service(name) unless service(name, "udp") }.first
    skip("every service that this machine knows is one for UDP, too") unless only_tcp
    reactor do
      assert_equal([Socket::SOCK_STREAM], Addrinfo.getaddrinfo("127.0.0.1", only_tcp).map(&:socktype))
      assert_equal([[port, Socket::SOCK_STREAM]], Socket.getaddrinfo("127.0.0.1", only_tcp).map { _1.values_at(1, 5) })
      assert_equal(port, Socket.unpack_sockaddr_in(Socket.sockaddr_in(only_tcp, "127.0.0.1")).first)
      [-> { Addrinfo.udp("127.0.0.1", only_tcp) }, -> { Addrinfo.getaddrinfo("localhost", only_tcp, nil, :DGRAM) },
       -> { keep(UDPSocket.new).connect("127.0.0.1", only_tcp) },
       -> { keep(UDPSocket.new).send("x", 0, "127.0.0.1", only_tcp) }].each do |call|
        assert_match(unknown, assert_raises(SocketError, &call).message)
      end
    end
  end

  def test_the_name_of_the_host_is_asked_for
    reactor do
      flags = Socket::AI_CANONNAME

      assert_equal([@port], Addrinfo.getaddrinfo("127.0.0.1", @service, nil, :STREAM, nil, flags).map(&:ip_port))
    end
  end

  # The system takes these for numbers, and Ruby does.
  def test_numbers_that_are_written_otherwise
    needs_numbers_of_any_form
    reactor do
      assert_equal([80, 80], [Addrinfo.tcp("127.0.0.1", "+80").ip_port, Addrinfo.udp("localhost", " 80").ip_port])
      assert_equal([4464, 4464], ["70000", 70_000].map { |port| Addrinfo.tcp("127.0.0.1", port).ip_port })
      assert_equal(3, Addrinfo.getaddrinfo("127.0.0.1", "+80").size)
      error = assert_raises(SocketError) { Addrinfo.tcp("127.0.0.1", -1) }

      assert_match(unknown, error.message)
    end
  end

  # With the address of a host, and with what Ruby takes for one.
  def test_the_error_of_a_connection_names_the_port_as_it_was_given
    needs_numbers_of_any_form
    reactor do
      port = free_port
      ["127.0.0.1", "localhost", ""].product([port + 65_536, "+#{port}"]).each do |host, given|
        [given, given.to_s].each do |one|
          error = assert_raises(Errno::ECONNREFUSED) { TCPSocket.new(host, one) }

          assert_match(/connect\(2\) for #{host.inspect} port #{Regexp.escape(given.to_s)}\z/, error.message)
        end
      end
    end
  end

  # They are longer than Ruby's own type of a port.
  def test_the_largest_numbers
    needs_numbers_of_any_form
    reactor do
      port = free_port + (1 << 40)

      assert_equal(Socket.sockaddr_in(port % 65_536, "127.0.0.1"), Socket.sockaddr_in(port, "127.0.0.1"))
      assert_match(/ port #{port}\z/, assert_raises(SystemCallError) { TCPSocket.new("", port) }.message)
    end
  end

  # What listens, is bound or sends names it as it was given, too.
  def test_every_error_names_the_port_as_it_was_given
    needs_numbers_of_any_form
    port = keep(TCPServer.new("127.0.0.1", 0)).addr[1]
    bound = keep(UDPSocket.new).tap { |socket| socket.bind("127.0.0.1", 0) }.addr[1]
    reactor do
      { 65_536 => ->(given) { keep(UDPSocket.new).send("a", 0, "127.0.0.1", given) },
        port + 65_536 => ->(given) { TCPServer.new("127.0.0.1", given) },
        bound + 65_536 => ->(given) { keep(UDPSocket.new).bind("127.0.0.1", given) } }.each do |number, call|
        [number, number.to_s, "+#{number}"].each do |given|
          error = assert_raises(Errno::EINVAL, Errno::EADDRINUSE) { call.call(given) }

          assert_match(/ - \w+\(2\) for "127.0.0.1" port #{Regexp.escape(given.to_s)}\z/, error.message)
          assert_nil(error.cause)
          assert_includes(error.backtrace.join("\n"), __method__.name)
        end
      end
    end
  end

  # An Addrinfo has no room for them. Ruby's Socket.tcp may find that the name of the host is at fault.
  def test_integers_that_are_too_large_for_an_addrinfo
    needs_numbers_of_any_form
    port = keep(TCPServer.new("127.0.0.1", 0)).addr[1]
    reactor do
      [1 << 32, port + (1 << 40)].each do |large|
        [-> { Addrinfo.tcp("127.0.0.1", large) }, -> { Addrinfo.udp("localhost", large) },
         -> { Addrinfo.getaddrinfo("127.0.0.1", large) }, -> { keep(Socket.tcp("127.0.0.1", large)) },
         -> { keep(Socket.tcp("127.0.0.1", port, "127.0.0.1", large)) }].each do |call|
          assert_raises(RangeError, &call)
        end
        assert_raises(RangeError, SocketError) { keep(Socket.tcp("localhost", large)) }
        assert_equal(large % 65_536, Socket.getaddrinfo("127.0.0.1", large)[0][1])
      end
    end
  end

  # The error says that it is the service which nobody knows, not the host.
  def test_the_error_of_an_unknown_service
    name = "no-such-service"
    reactor do
      [-> { Addrinfo.tcp("localhost", name) }, -> { Addrinfo.getaddrinfo("no.such.host.invalid", name) },
       -> { Socket.sockaddr_in(name, "127.0.0.1") }, -> { Socket.getaddrinfo("localhost", name) },
       -> { keep(UDPSocket.new).connect("127.0.0.1", name) }, -> { keep(UDPSocket.new).bind("127.0.0.1", name) },
       -> { keep(UDPSocket.new).send("x", 0, "127.0.0.1", name) }, -> { TCPServer.new("127.0.0.1", name) },
       -> { TCPSocket.new("127.0.0.1", name) }].each do |call|
        assert_match(unknown, assert_raises(SocketError, &call).message)
      end
      error = assert_raises(SocketError) { Addrinfo.getaddrinfo("localhost", name, "no-family") }

      assert_equal("unknown socket domain: no-family", error.message)
    end
  end

  def test_what_is_no_service
    reactor do
      assert_raises(SocketError) { Addrinfo.tcp("localhost", "no-such-service") }
      assert_raises(SocketError, ArgumentError) { Addrinfo.tcp("localhost", "ht\0tp") }
      assert_raises(ArgumentError) { Addrinfo.tcp("localhost") }
      assert_equal(80, Addrinfo.tcp("localhost", "80").ip_port)
      assert_equal(0, Addrinfo.tcp("localhost", nil).ip_port)
      assert_equal(0, Addrinfo.tcp("localhost", "").ip_port)
    end
  end

  private

  def service(name, protocol = "tcp")
    [name, Socket.getservbyname(name, protocol)]
  rescue SocketError
    nil
  end
end
