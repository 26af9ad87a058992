# frozen_string_literal: true

# bin/test: takes 60 s, 0.8 of a core

require_relative "../test_helper"
require "openssl"
require "support/serve_case"

# HUP and USR2 to `heddle serve`: nobody is lost, whatever is loaded, and whatever else comes.
class ServeRestartsTest < HeddleTest
  include TestSupport::ServeCase

  BROKEN = "raise 'a broken release'"

  # One process, workers, and workers of an application that is loaded before them.
  WAYS = [[0], [2], [2, "--preload"]].freeze

  def test_an_application_that_does_not_load_leaves_the_old_one
    WAYS.each do |count, *arguments|
      write("config.ru", APP)
      write("name", "one")
      program = serve_in(count, *arguments)
      write("config.ru", BROKEN)
      said = while_asked(program) do
        %i[USR2 HUP].each.with_index(1) do |signal, times|
          program.signal(signal)
          program.wait_for(/this program goes on|worker 0 stays/, times)
        end
      end

      assert_equal(%w[one], said.uniq)
      assert_said(program, /a broken release/)
      write("config.ru", APP)
      write("name", "two")
      program.signal(:USR2)
      wait_until("the next release serves") { ask(program) == "two" }

      assert_ends(program)
    end
  end

  # Such as a gem that is missing: nothing of the new program runs.
  def test_a_program_that_does_not_start_leaves_the_old_one
    [0, 1].each do |count|
      write("heddle.rb", "drain 20")
      program = serve_in(count, "--config", "heddle.rb")
      write("heddle.rb", "require 'no/such/library'")
      program.signal(:USR2)
      program.wait_for(/this program goes on/)

      assert_equal("one", ask(program))
      assert_said(program, %r{no/such/library})
      assert_ends(program)
    end
  end

  def test_the_workers_load_the_application_at_the_same_time
    write("config.ru", <<~RUBY)
      File.write("loads-\#{Process.pid}", "")
      sleep(0.01) until Dir.glob("loads-*").size == 3
      #{APP}
    RUBY

    assert_equal("one", ask(workers(3, "--boot-timeout", "50")))
  end

  def notified
    told = keep(Socket.new(:UNIX, :DGRAM))
    told.bind(Addrinfo.unix(path("notify")))
    yield({ "NOTIFY_SOCKET" => path("notify") }, told)
  end

  def test_systemd_is_told_when_the_first_worker_serves
    write("config.ru", "sleep if File.exist?('first')\nFile.write('first', '')\n#{APP}")
    notified do |env, told|
      program = serve("--workers", "2", env:, until_said: /is ready/)

      assert_equal("READY=1", told.recv(100))
      program.signal(:TERM)

      assert_equal("STOPPING=1", told.recv(100))
    end
  end

  def test_a_server_none_of_whose_workers_starts_ends
    write("config.ru", BROKEN)
    notified do |env, told|
      program = serve("--workers", "2", env:)

      assert_equal(1, program.wait.exitstatus)
      assert_equal(:wait_readable, told.recv_nonblock(100, exception: false))
      assert_said(program, /a broken release/)
    end
  end

  # The folder in which it was started, or that of --directory, is a link that leads to another release later.
  def test_a_link_to_the_release_is_followed
    %w[one two three].each do |name|
      Dir.mkdir(path(name))
      write("#{name}/config.ru", APP)
      write("#{name}/name", name)
    end
    [[2, { dir: path("current") }], [0, {}, "--directory", path("current")]].each do |count, where, *arguments|
      lead_to("one")
      program = serve_in(count, *arguments, **where)
      seen = { HUP: "two", USR2: "three" }.map do |signal, name|
        lead_to(name)
        program.signal(signal)
        wait_until("#{name} serves") { name_and_pid(program).first == name }
      end

      assert_equal(2, seen.size)
      assert_ends(program)
    end
  end

  def lead_to(release)
    File.symlink(path(release), path("next"))
    File.rename(path("next"), path("current"))
  end

  def test_hup_opens_the_log_and_loads_the_certificates_anew
    [0, 1].each do |count|
      certificate("first")
      program = serve_in(count, "--access-log", "log", bind: "ssl://127.0.0.1:0?cert=cert&key=key")
      port = program.said.join[%r{ssl://[\d.]+:(\d+)}, 1].to_i

      assert_equal("first", shown(port))
      File.rename(path("log"), path("log.1"))
      certificate("second")
      write("config.ru", BROKEN) # they do not depend on it
      program.signal(:HUP)
      program.wait_for(/this program goes on|worker 0 stays/)

      assert_equal("second", shown(port))
      assert_equal([1, 1], ["log.1", "log"].map { |name| File.readlines(path(name)).size })
      assert_ends(program)
    ensure
      write("config.ru", APP)
      File.unlink(path("log"))
    end
  end

  def certificate(name)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    one = OpenSSL::X509::Certificate.new
    one.subject = one.issuer = OpenSSL::X509::Name.parse("/CN=#{name}")
    one.not_before = Time.now - 60
    one.not_after = Time.now + 3600
    one.public_key = key
    one.sign(key, "SHA256")
    write("cert", one.to_pem)
    write("key", key.to_pem)
  end

  # Makes a request, and returns the name of the certificate.
  def shown(port)
    tcp = TCPSocket.new("127.0.0.1", port)
    tls = OpenSSL::SSL::SSLSocket.new(tcp)
    tls.sync_close = true
    tls.connect
    tls.write("GET / HTTP/1.0\r\n\r\n")

    assert_includes(tls.read, "one")
    tls.peer_cert.subject.to_a.first[1]
  ensure
    tls&.close
  end

  # Whether --bind names them or not, nothing else is opened.
  def test_sockets_of_systemd_outlive_the_program
    script = 'ENV["LISTEN_PID"] = Process.pid.to_s; ENV["LISTEN_FDS"] = "1"; exec(*ARGV, 3 => 3)'
    [[0, false], [2, true]].each do |count, named|
      tcp = keep(TCPServer.new("127.0.0.1", 0))
      bind = ["--bind", "tcp://127.0.0.1:#{tcp.addr[1]}"] if named
      command = [RbConfig.ruby, "-e", script, *ruby_command, EXE, "serve", *bind]
      program = serve_in(count, command:, 3 => tcp)
      tcp.close

      assert_equal(["tcp://127.0.0.1:#{program.port}"], program.said.grep(/listening/).join.scan(%r{tcp://[\d.:]+}))
      %i[USR2 HUP].each.with_index(2) do |signal, times|
        said = while_asked(program, clients: 1) do
          program.signal(signal)
          program.wait_for(count.zero? ? /listening/ : /is ready/, count.zero? ? times : 2 * times)
        end

        assert_equal(%w[one], said.uniq)
      end
      assert_ends(program)
    end
  end
end
