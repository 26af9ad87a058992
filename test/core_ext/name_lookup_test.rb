# frozen_string_literal: true

# bin/test: takes 29 s, 0.1 of a core

require_relative "../test_helper"
require "support/fake_resolver"

# The names of addresses, and whatever else of Ruby's sockets takes or gives a name: only the fiber that wants it
# waits for the resolver. The resolver is a preloaded one.
contract "NameLookup" do
  include TestSupport::FakeResolver

  # What each operation says, which is what plain Ruby says; under Heddle also whether the others stood still.
  prelude = <<~RUBY
    require "socket"
    BasicSocket.do_not_reverse_lookup = true
    KEPT = []
    def lookups = File.size?(ENV["FAKE_LOG"]).to_i # (each takes 0.2 s)
    def outcome
      yield.inspect
    rescue StandardError => e
      "\#{e.class}: \#{e.message}"
    end
    def tcp
      server = TCPServer.new("127.0.0.1", 0)
      client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      KEPT << server << client
      client
    end
    def udp_pair
      near, far = Array.new(2) { UDPSocket.new.tap { |one| one.bind("127.0.0.1", 0) } }
      KEPT << near << far
      near.do_not_reverse_lookup = false
      far.send("text", 0, "127.0.0.1", near.local_address.ip_port)
      near
    end
    def globally
      BasicSocket.do_not_reverse_lookup = false
      yield
    ensure
      BasicSocket.do_not_reverse_lookup = true
    end
    def show(name, &block)
      running, turns, before = true, 0, lookups
      # (It is ready to run from the first wait on, however slow the machine is.)
      ticker = Heddle.spawn { (sleep(turns < 3 ? 0 : 0.001); turns += 1) while running } if defined?(Heddle)
      said = outcome(&block)
      slow = lookups > before
      running = false
      puts "\#{name} \#{slow ? "slow" : "quick"}: \#{said.gsub(/\\d{4,5}/, "PORT")}"
      abort("\#{name}: the others stood still") if ticker && slow && turns.zero?
      ticker&.value
    end
    ADDRESS = Addrinfo.tcp("127.0.0.1", 8123)
  RUBY

  operations = <<~RUBY
    show("addrinfo") { ADDRESS.getnameinfo }
    show("addrinfo nil") { ADDRESS.getnameinfo(nil) }
    show("addrinfo, IPv6") { Addrinfo.udp("::1", 8123).getnameinfo(Socket::NI_NUMERICSERV) }
    show("addrinfo, numeric") { ADDRESS.getnameinfo(Socket::NI_NUMERICHOST) }
    show("addrinfo, a path") { Addrinfo.unix("/tmp/x").getnameinfo.last }
    show("addrinfo, odd flags") { ADDRESS.getnameinfo("x") }
    show("socket") { Socket.getnameinfo(ADDRESS.to_sockaddr) }
    show("socket, an addrinfo") { Socket.getnameinfo(ADDRESS, Socket::NI_NUMERICSERV) }
    show("socket, an array") { Socket.getnameinfo(["AF_INET", 8123, "127.0.0.1"]) }
    show("socket, four") { Socket.getnameinfo(["AF_INET", 8123, "x", "127.0.0.1"]) }
    show("socket, an array with a name") { Socket.getnameinfo(["AF_INET", 8123, "slow"], Socket::NI_NUMERICHOST) }
    show("socket, numeric") { Socket.getnameinfo(ADDRESS.to_sockaddr, Socket::NI_NUMERICHOST) }
    show("socket, nonsense") { Socket.getnameinfo("nonsense") }
    show("socket, an integer") { Socket.getnameinfo(1) }
    show("addr") { tcp.addr(true) }
    show("addr, hostname") { tcp.addr(:hostname) }
    show("addr, numeric") { tcp.addr(:numeric) }
    show("addr, odd") { tcp.addr(:odd) }
    show("peeraddr") { tcp.peeraddr(true) }
    show("peeraddr, false") { tcp.peeraddr(false) }
    show("peeraddr, by default") { tcp.peeraddr }
    show("peeraddr, of its own") { tcp.tap { |one| one.do_not_reverse_lookup = false }.peeraddr }
    show("peeraddr, closed") { tcp.tap(&:close).peeraddr(true) }
    show("recvfrom") { udp_pair.recvfrom(10) }
    show("getaddrinfo") { Socket.getaddrinfo("127.0.0.1", 8123, nil, :STREAM, nil, nil, true) }
    show("getaddrinfo, nothing") { Socket.getaddrinfo(*[nil] * 7).first }
    show("getaddrinfo, too few") { Socket.getaddrinfo("127.0.0.1") }
    show("getaddrinfo, globally") { globally { Socket.getaddrinfo("127.0.0.1", 8123, :INET, :STREAM) } }
  RUBY

  names = <<~RUBY
    show("Addrinfo.getaddrinfo") { Addrinfo.getaddrinfo("slow", 8123, nil, :STREAM) }
    show("Addrinfo.tcp") { Addrinfo.tcp("slow", 8123) }
    show("Addrinfo.udp") { Addrinfo.udp("slow", 8123) }
    show("Addrinfo.foreach") { Addrinfo.foreach("slow", 8123, nil, :STREAM).to_a }
    show("Socket.getaddrinfo") { Socket.getaddrinfo("slow", 8123, nil, :STREAM) }
    show("Socket.pack_sockaddr_in") { Socket.unpack_sockaddr_in(Socket.pack_sockaddr_in(8123, "slow")) }
    show("IPSocket.getaddress") { IPSocket.getaddress("slow") }
    show("TCPServer.new") { TCPServer.new("slow", 0).close }
    show("TCPServer.open") { TCPServer.open("slow", 0).close }
    show("Socket.tcp_server_sockets") { Socket.tcp_server_sockets("slow", 0).each(&:close).size }
    show("Socket.udp_server_sockets") { Socket.udp_server_sockets("slow", 0).each(&:close).size }
    show("UDPSocket#bind") { UDPSocket.new.bind("slow", 0) }
    show("UDPSocket#connect") { UDPSocket.new.connect("slow", 8123) }
    show("UDPSocket#send") { UDPSocket.new.send("x", 0, "slow", 8123) }
    show("Socket#connect") { Socket.new(:INET, :STREAM).connect(Socket.pack_sockaddr_in(KEPT.first.addr[1], "slow")) }
    show("Socket.gethostbyname") { $VERBOSE = nil; Socket.gethostbyname("slow").values_at(0, 3) }
    show("TCPSocket.gethostbyname") { TCPSocket.gethostbyname("slow").values_at(0, 3) }
  RUBY

  define_method(:said_by) do |heddle, code, env|
    script = heddle ? "Heddle.run do\n#{code}end" : code
    assert_script("#{prelude}#{script}", heddle:, env: env.merge("HEDDLE_BACKEND" => backend)).lines
  end

  def same_as_plain_ruby(code)
    heddle_only("the resolver of its own process")
    env = fake_hosts("slow 4 200 127.0.0.1\nslow 6 200 !-2\n").merge("FAKE_REVERSE" => "200")
    plain, own = [false, true].map { |heddle| said_by(heddle, code, env) }

    assert_equal(code.lines.size, plain.size)
    assert_equal(plain, own)
    plain
  end

  define_method(:test_the_names_of_addresses) do
    said = same_as_plain_ruby(operations)

    assert_operator(said.grep(/ slow: .*fake-name/).size, :>, 12)
  end

  define_method(:test_addresses_by_name) do
    skip_on_musl("its getaddrinfo always gives a canonical name, which Ruby does not ask a scheduler for")
    said = same_as_plain_ruby("show(\"tcp\") { tcp.class }\n#{names}")

    assert_operator(said.grep(/ slow: /).size, :>=, 15) # (Ruby 4.1 has no gethostbyname any more)
  end

  def test_many_at_once_and_cancelled
    heddle_only("the resolver of its own process")
    env = fake_hosts("").merge("FAKE_REVERSE" => "1000", "HEDDLE_BACKEND" => backend)

    assert_script(<<~RUBY, env:)
      require "timeout"
      now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      Heddle.run do
        started = now.call
        names = Array.new(50) { |i| Heddle.spawn { Addrinfo.tcp("127.0.0.\#{i + 1}", 8123).getnameinfo.first } }
        abort("not all") unless names.map(&:value).uniq == ["fake-name"]
        abort("took \#{now.call - started}") if now.call - started > 20
        begin
          Timeout.timeout(0.05) { Addrinfo.tcp("127.0.0.99", 8123).getnameinfo }
          abort("no timeout")
        rescue Timeout::Error
        end
        task = Heddle.spawn { Addrinfo.tcp("127.0.0.98", 8123).getnameinfo }
        sleep(0.02)
        task.cancel
        begin
          task.value
          abort("not cancelled")
        rescue Heddle::Cancelled
        end
      end
    RUBY
  end
end
