# frozen_string_literal: true

require_relative "../test_helper"
require "socket"

# The flags of a lookup are heeded, as in plain Ruby.
contract "LookupFlags" do
  def list(flags, host: "localhost", family: nil)
    Addrinfo.getaddrinfo(host, 80, family, :STREAM, nil, flags)
  end

  def assert_as_plain(&lookup)
    plain = outcome(&lookup)

    assert_equal(plain, reactor { go { outcome(&lookup) }.value })
    plain
  end

  def outcome
    yield
  rescue SocketError => e
    [e.class, e.message]
  end

  def test_the_canonical_name
    assert_equal(["localhost"], assert_as_plain { list(Socket::AI_CANONNAME).map(&:canonname).uniq })
    assert_as_plain { Addrinfo.foreach("localhost", 80, nil, :STREAM, nil, Socket::AI_CANONNAME).map(&:canonname) }
  end

  def test_mapped_addresses
    flags = Socket::AI_V4MAPPED | Socket::AI_ALL

    assert_includes(assert_as_plain { list(flags, family: :INET6).map(&:ip_address) }, "::ffff:127.0.0.1")
  end

  def test_a_flag_that_is_none
    error, message = assert_as_plain { list(1 << 20) }

    assert_equal(Socket::ResolutionError, error)
    assert_match(/\Agetaddrinfo: (Bad value for ai_flags|Invalid flags)\z/, message) # of glibc, of musl
  end

  def test_the_older_method
    assert_includes(assert_as_plain { Socket.getaddrinfo("localhost", 80, nil, :STREAM, nil, Socket::AI_CANONNAME) },
                    ["AF_INET", 80, "localhost", "127.0.0.1", Socket::AF_INET, Socket::SOCK_STREAM, 6])
  end

  def test_other_flags
    [nil, 0, Socket::AI_PASSIVE, Socket::AI_NUMERICSERV, Socket::AI_ADDRCONFIG].each do |flags|
      assert_includes(assert_as_plain { list(flags).map(&:ip_address) }, "127.0.0.1")
    end
    assert_as_plain { list(Socket::AI_NUMERICHOST).map(&:ip_address) }
  end
end
