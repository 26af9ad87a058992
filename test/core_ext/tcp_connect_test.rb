# frozen_string_literal: true

# bin/test: takes 40 s, 0.2 of a core

require_relative "../test_helper"
require "support/fake_resolver"

# TCPSocket.new, Socket.tcp and what is built on them, by name. The resolver is a preloaded one.
contract "TCPConnect" do
  include TestSupport::FakeResolver

  # Servers, the resolver's gate, another fiber that counts its turns, and the time.
  prelude = <<~RUBY
    require "net/http"
    require "timeout"
    KEPT = []
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def server(*hosts)
      port = 0
      hosts.each { |host| port = (KEPT << TCPServer.new(host, port)).last.local_address.ip_port }
      port
    end
    def silent_port(host)
      socket = Addrinfo.tcp(host, 0).listen(0)
      KEPT << socket
      loop do # until its queue is full
        KEPT << Socket.new(socket.local_address.pfamily, :STREAM)
        KEPT.last.connect_nonblock(socket.local_address, exception: false)
        break unless KEPT.last.wait_writable(0.2)
      end
      socket.local_address.ip_port
    end
    def elapsed = now.then { |started| [yield, now - started] }
    # Answers with a negative time come when this was called.
    def open_gate = File.write(ENV.fetch("FAKE_HOSTS") + ".open", "")
    def lookups = File.exist?(ENV.fetch("FAKE_LOG")) ? File.readlines(ENV.fetch("FAKE_LOG")) : []
    def wait_until(what)
      limit = now + 20
      (now < limit ? sleep(0.01) : abort("not so: \#{what}")) until yield
    end
    def failure
      yield
      nil
    rescue Exception => e
      e
    end
    # Whether the block ends before another fiber has slept for this time: if not at once, then in one of the next 20
    # seconds, for a busy machine spoils a try.
    def ever_before?(seconds)
      limit = now + 20
      loop do
        slept = false
        sleeper = Heddle.spawn { sleep(seconds) && slept = true }
        yield
        return true unless slept
        return false if now > limit
      ensure
        sleeper&.cancel
      end
    end
    def counts = Fiber.scheduler.send(:counts)
    def check(value, what) = value ? nil : abort("not so: \#{what}")
  RUBY

  # NAME FAMILY MILLISECONDS ANSWER
  hosts = <<~HOSTS
    one4 4 0 127.0.0.1
    known 0 0 127.0.0.1
    known 4 0 127.0.0.1
    known 6 30000 !-3
    both 6 0 ::1
    both 4 0 127.0.0.1
    other 4 60 127.0.0.1
    slow4 6 0 !-2
    slow4 4 120 127.0.0.1
    slow 6 600 ::1
    slow 4 600 127.0.0.1
    slow-* 6 400 !-2
    slow-* 4 400 127.0.0.1
    gate-* 6 -1 !-2
    gate-* 4 -1 127.0.0.1
    half-* 0 1500 127.0.0.1
    half-* 6 -1 !-2
    half-* 4 -1 127.0.0.1
    name-* 4 30 127.0.0.1
    six-slow 6 30000 ::1
    six-slow 4 0 127.0.0.1
    four-slow 6 0 ::1
    four-slow 4 30000 127.0.0.1
    six-fails 6 30000 !-3
    six-fails 4 0 127.0.0.1
    four-later 6 0 ::1
    four-later 4 300 127.0.0.1
    dead 6 30000 !-3
    dead 4 30000 !-3
    none 6 0 !-2
    none 4 0 !-2
    again 6 0 !-3
    again 4 0 !-3
    nodata 6 0 !-5
    nodata 4 0 !-5
  HOSTS

  define_method(:hosts) { hosts }

  define_method(:script) do |code|
    heddle_only("the resolver of its own process")
    @env = fake_hosts(hosts)

    assert_script("#{prelude}\nHeddle.run do\n#{code}\nend\n", env: @env.merge("HEDDLE_BACKEND" => backend))
  end

  def test_the_others_run_and_the_lookups_run_at_the_same_time
    script(<<~RUBY)
      port = server("127.0.0.1")
      KEPT.last.listen(100)
      tasks = Array.new(50) { |i| Heddle.spawn { TCPSocket.new("gate-\#{i}", port).close } }
      wait_until("all are looked up") { lookups.map { |line| line.split.first }.uniq.size == 50 }
      check(tasks.none?(&:finished?), "the gate is open")
      open_gate
      tasks.each(&:value)
    RUBY
  end

  # The connects that were begun for the first fifty (each family by itself, for they took long) hold up nobody.
  def test_fifty_and_fifty_others
    script(<<~RUBY)
      port = server("127.0.0.1")
      KEPT.last.listen(200)
      connect = ->(name) { Array.new(50) { |i| Heddle.spawn { TCPSocket.new("\#{name}-\#{i}", port).close } } }
      connect.call("half").each(&:value)
      others = connect.call("name")
      wait_until("the others have connected") { others.all?(&:finished?) }
      open_gate
      others.each(&:value)
    RUBY
  end

  def test_a_dead_name_that_many_want_holds_up_no_other
    script(<<~RUBY)
      port = server("127.0.0.1")
      dead = Array.new(300) { Heddle.spawn { failure { TCPSocket.new("dead", port) } } }
      sleep(0.1)
      _, seconds = elapsed { TCPSocket.new("other", port).close }
      check(seconds < 25, "took \#{seconds}")
      check(counts[:workers] <= 8, "\#{counts}")
      dead.each(&:cancel)
    RUBY

    assert_equal(["dead 4", "dead 6", "dead any", "other any"], (lookups(@env) - ["other 4", "other 6"]).sort)
  end

  def test_the_workers_are_few
    script(<<~RUBY)
      port = server("127.0.0.1")
      KEPT.last.listen(1000)
      most = 0
      Array.new(400) do |i|
        Heddle.spawn do
          TCPSocket.new("name-\#{i}", port).close
          most = [most, counts[:workers]].max
        end
      end.each(&:value)
      check(most.between?(10, 64), "\#{most} workers")
      check(counts[:queued].zero?, "\#{counts}")
    RUBY
  end

  def test_what_ruby_says_to_each_option
    heddle_only("the resolver of its own process")
    cases = File.expand_path("../support/connect_cases.rb", __dir__)
    plain = own = nil
    3.times do # (On a busy machine an address of the other family may be the first to be known.)
      env = fake_hosts(hosts).merge("HEDDLE_BACKEND" => backend)
      said = [false, true].map { |heddle| run_ruby("load ARGV[0]", cases, env:, heddle:) }

      assert_equal(["", ""], said.map(&:err))
      plain, own = said.map { |outcome| outcome.out.lines }
      break if plain.sort == own.sort
    end

    assert_operator(plain.size, :>, 80)
    assert_empty(own - plain)
    assert_empty(plain - own)
    assert_equal(plain.size, own.size)
  end

  def test_a_family_that_is_slow_to_resolve
    script(<<~RUBY)
      port = server("127.0.0.1", "::1")
      [["six-slow", "127.0.0.1"], ["four-slow", "::1"], ["six-fails", "127.0.0.1"]].each do |name, address|
        [TCPSocket, Socket].each do |one|
          socket, seconds = elapsed { one == Socket ? Socket.tcp(name, port) : TCPSocket.new(name, port) }
          check(seconds < 25, "\#{name} took \#{seconds}")
          check(socket.remote_address.ip_address == address, socket.remote_address.inspect)
          check(socket.instance_of?(one), socket)
          socket.close
        end
      end
    RUBY
  end

  # The hosts file knows its IPv4 address, and the name servers, which alone could tell of an IPv6 one, are dead.
  def test_a_name_in_the_hosts_file
    script(<<~RUBY)
      port = server("127.0.0.1")
      [TCPSocket.method(:new), Socket.method(:tcp)].each do |connect|
        _, seconds = elapsed { 50.times { connect.call("known", port).close } }
        check(seconds < 25, "took \#{seconds}")
      end
    RUBY
  end

  def test_an_address_that_is_silent
    script(<<~RUBY)
      port = silent_port("::1")
      KEPT << TCPServer.new("127.0.0.1", port)
      socket, seconds = elapsed { TCPSocket.new("both", port) }
      check(seconds.between?(0.2, 25), "took \#{seconds}")
      check(socket.remote_address.ip_address == "127.0.0.1", socket)
      check(socket.write("x") == 1 && KEPT.last.accept.readpartial(1) == "x", "not connected")
      socket.close
    RUBY
  end

  def test_the_first_address_refuses
    script(<<~RUBY)
      port = server("127.0.0.1")
      check(ever_before?(0.2) { TCPSocket.new("both", port).close }, "it waits for the first address")
      socket, seconds = elapsed { TCPSocket.new("four-later", port) }
      check(seconds.between?(0.25, 25), "took \#{seconds}")
      socket.close
    RUBY
  end

  def test_timeouts_and_cancels_while_a_name_is_looked_up
    script(<<~RUBY)
      port = silent_port("127.0.0.1")
      open_files = Dir.children("/proc/self/fd").size
      %w[dead six-slow].each do |name|
        [0.02, 0.2, 0.4].each do |time|
          error, seconds = elapsed { failure { Timeout.timeout(time, KeyError) { Socket.tcp(name, port) } } }
          check(error.instance_of?(KeyError) && seconds < time + 25, "\#{error.inspect} \#{seconds}")
          task = Heddle.spawn { TCPSocket.new(name, port) }
          sleep(time)
          task.cancel
          check(failure { task.value }, "not cancelled")
        end
      end
      check(Dir.children("/proc/self/fd").size <= open_files, "descriptors left")
      check(counts[:queued].zero?, "\#{counts}")
    RUBY
  end

  def test_net_http
    script(<<~RUBY)
      port = server("127.0.0.1")
      Heddle.spawn do
        client = KEPT.first.accept
        client.gets("\\r\\n\\r\\n")
        client << "HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\nconnection: close\\r\\n\\r\\nok"
        client.close
      end
      check(Net::HTTP.get("both", "/", port) == "ok", "no answer")
      http = Net::HTTP.new("dead", port)
      http.open_timeout = 0.1
      error, seconds = elapsed { failure { http.start } }
      check(error.is_a?(Net::OpenTimeout) && seconds < 25, "\#{error.inspect} \#{seconds}")
      error = failure { Net::HTTP.start("none.invalid", port) }
      check(error.is_a?(SocketError) && error.message.include?("none.invalid"), error.inspect)
    RUBY
  end

  def test_errors_of_the_resolver_through_the_hook
    script(<<~RUBY)
      { "again" => Socket::EAI_AGAIN, "none" => Socket::EAI_NONAME }.each do |name, code|
        error = failure { Addrinfo.getaddrinfo(name, 80) }
        check(error.is_a?(Socket::ResolutionError) && error.error_code == code, error.inspect)
      end
    RUBY
  end

  def test_in_a_ractor
    script(<<~RUBY)
      port = server("127.0.0.1", "::1")
      Warning[:experimental] = false
      ractor = Ractor.new(port) do |number|
        Heddle.run { %w[one4 both].map { |name| TCPSocket.new(name, number).then { |it| it.close || it.class } } }
      end
      value = Heddle.spawn { Thread.new { ractor.respond_to?(:value) ? ractor.value : ractor.take }.value }.value
      check(value == [TCPSocket, TCPSocket], value.inspect)
    RUBY
  end

  def test_a_fork_while_names_are_looked_up
    script(<<~RUBY)
      port = server("127.0.0.1")
      task = Heddle.spawn { TCPSocket.new("slow", port).close }
      sleep(0.1)
      pid = fork do
        Heddle.run { TCPSocket.new("one4", port).close }
        exit!(0)
      end
      check(Process.wait2(pid).last.success?, "the child failed")
      task.value
    RUBY
  end

  # net-http, dalli and redis-client ask for them, to know which options there are.
  def test_the_parameters_are_rubys
    code = "require 'socket'; p [TCPSocket.instance_method(:initialize), Socket.method(:tcp)].map(&:parameters)"
    said = [false, true].map { |heddle| assert_script(code, heddle:).gsub(/, \[:block, :\S\w*\]/, "") }

    assert_equal(said.first, said.last)
  end

  def test_localhost
    reactor do
      server = tcp_server
      [TCPSocket.new("localhost", server.addr[1]), Socket.tcp("localhost", server.addr[1])].each do |client|
        keep(client).write("x")

        assert_equal("x", keep(server.accept).readpartial(1))
      end
      assert_raises(ArgumentError) { TCPSocket.new("localhost", server.addr[1], nonsense: 1) }
      assert_raises(ArgumentError) { TCPSocket.new }
    end
  end
end
