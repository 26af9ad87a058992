# frozen_string_literal: true

# bin/test: takes 10 s, 0.3 of a core

require_relative "../../test_helper"
require "support/clients"
require "support/fake_resolver"
require "support/servers/mariadb"
require "support/servers/postgres"
require "support/servers/redis"

# A name with two addresses, of which the first one drops all packets, as IPv6 does behind some firewalls. The name is
# that of a preloaded resolver, so each client is in a process of its own.
contract "SilentAddresses" do
  extend TestSupport::Clients
  include TestSupport::FakeResolver

  client "redis-client", server: TestSupport::Servers::Redis
  client "pg", server: TestSupport::Servers::Postgres
  client "trilogy", server: TestSupport::Servers::Mariadb
  client "mysql2"

  heddle_only "the resolver of its own process"

  hosts = "both 6 0 ::1\nboth 4 0 127.0.0.1\n"

  # Another task runs while the client waits for the first address.
  prelude = <<~RUBY
    require "timeout"
    PORT = Integer(ENV.fetch("PORT"))
    def check(value, what) = value || abort("not so: \#{what}")
    def asking
      turns = 0
      other = Heddle.spawn { loop { (turns += 1) && sleep(0.01) } }
      yield.tap { check(turns > 3, "\#{turns} turns") }
    ensure
      other.cancel
    end
    # On a busy machine it may have a connection with the next address before.
    def cancelled
      20.times do
        task = Heddle.spawn { yield }
        task.wait(0.1)
        return if task.cancel.wait(20).cancelled?
        task.value.close
      end
      abort("not cancelled")
    end
    def timed_out
      20.times { Timeout.timeout(0.1) { yield }.close }
      abort("not timed out")
    rescue Timeout::Error
      nil
    end
    def open_files = Dir.children("/proc/self/fd").size
  RUBY

  define_method(:script) do |server, *features, code|
    silence(server.port)
    env = fake_hosts(hosts).merge("HEDDLE_BACKEND" => backend, "PORT" => server.port.to_s)

    requires = features.map { |feature| "require #{feature.inspect}\n" }.join
    program = "#{requires}#{prelude}\nHeddle.run do\n#{code}\nend\n"

    assert_script(program, gems: true, env:, options: %w[-W0])
  end

  # The port of the other family: its queue is full, so the kernel drops further attempts to connect.
  def silence(port)
    listener = keep(Addrinfo.tcp("::1", port).listen(0))
    loop do
      socket = keep(Socket.new(:INET6, :STREAM))
      socket.connect_nonblock(listener.local_address, exception: false)
      break unless socket.wait_writable(0.2)
    end
  rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
    skip("no IPv6 here")
  end

  # Ruby's sockets begin with the next address after 0.25 seconds.
  def test_sockets_of_ruby
    script(TestSupport::Servers::Redis.running, "redis-client", <<~RUBY)
      config = RedisClient.config(host: "both", port: PORT, timeout: 20)
      connect = -> { config.new_client.tap { |client| client.call("PING") } }
      client = asking { connect.call }
      before = open_files
      cancelled { connect.call }
      timed_out { connect.call }
      check(open_files == before, "\#{open_files} descriptors, \#{before} before")
      check(client.call("PING") == "PONG", "another answer")
    RUBY
  end

  # libpq begins with the next address when connect_timeout is over.
  def test_pg
    script(TestSupport::Servers::Postgres.running, "pg", <<~RUBY)
      connect = -> { PG.connect(host: "both", port: PORT, user: "heddle", dbname: "postgres", connect_timeout: 2) }
      client = asking { connect.call }
      cancelled { connect.call }
      timed_out { connect.call }
      check(client.exec("SELECT 7").values == [["7"]], "another answer")
    RUBY
  end

  # So do the clients of MySQL.
  def test_trilogy
    script(TestSupport::Servers::Mariadb.running, "bigdecimal", "trilogy", <<~RUBY)
      connect = -> { Trilogy.new(host: "both", port: PORT, username: "heddle", connect_timeout: 1) }
      client = asking { connect.call }
      cancelled { connect.call }
      timed_out { connect.call }
      check(client.query("SELECT 7").to_a == [[7]], "another answer")
    RUBY
  end

  def test_mysql2
    script(TestSupport::Servers::Mariadb.running, "mysql2", "heddle/adapters/mysql2", <<~RUBY)
      connect = -> { Mysql2::Client.new(host: "both", port: PORT, username: "heddle", connect_timeout: 1) }
      client = asking { connect.call }
      cancelled { connect.call }
      timed_out { connect.call }
      check(client.query("SELECT 7 AS number").to_a == [{ "number" => 7 }], "another answer")
    RUBY
  end
end
