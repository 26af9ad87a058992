# frozen_string_literal: true

# bin/test: takes 20 s, 0.6 of a core

require_relative "../test_helper"
require "support/serve_case"

# `heddle serve`: its processes, signals and sockets.
class ServeProgramTest < HeddleTest
  include TestSupport::ServeCase

  def pids(program, tries = 30) = Array.new(tries) { Integer(program.get.body.split.last) }.uniq.sort

  def test_one_process
    program = serve

    assert_equal("one #{program.pid}", program.get.body)
    program.signal(:TERM)

    assert_predicate(program.wait, :success?)
  end

  def test_term_waits_for_the_requests
    program = serve
    answer = Thread.new { program.get("/?0.5") }
    wait_until_begun
    program.signal(:TERM)

    assert_equal("200", answer.value.code)
    assert_predicate(program.wait, :success?)
  end

  def test_a_second_signal_does_not_wait
    program = serve
    answer = Thread.new { program.get("/?60") rescue $! } # rubocop:disable Style/RescueModifier
    wait_until_begun
    program.signal(:TERM)
    wait_until("it takes no connections") { refused?(program.port) }
    program.signal(:TERM)

    assert_predicate(program.wait, :success?)
    assert_kind_of(EOFError, answer.value)
  end

  # They do not wait in a queue that nobody serves.
  def test_connections_are_refused_while_it_stops
    [0, 2].each do |count|
      program = serve_in(count)
      answer = Thread.new { program.get("/?60") rescue $! } # rubocop:disable Style/RescueModifier
      wait_until_begun
      program.signal(:TERM)
      wait_until("it takes no connections") { refused?(program.port) }

      assert(alive?(program.pid), "it stops only then")
      program.signal(:TERM)

      assert_predicate(program.wait, :success?)
      assert_kind_of(EOFError, answer.value)
      File.unlink(path("begun"))
    end
  end

  def test_the_file_of_a_unix_socket_goes_with_the_server
    file = path("socket")
    [0, 2].each do |count|
      program = serve_in(count, bind: "unix:#{file}")
      wait_until("it serves") { asked_at(file).include?("200") }
      program.signal(:TERM)

      assert_predicate(program.wait, :success?)
      refute_path_exists(file)
    end
  end

  def test_workers_share_the_connections
    program = workers(2)

    assert_equal(2, pids(program, 60).size)
    refute_includes(pids(program), program.pid)
    program.signal(:INT)

    assert_predicate(program.wait, :success?)
  end

  def test_a_worker_that_dies_is_replaced_and_no_connection_is_refused
    program = workers(2)
    before = pids(program, 60)

    assert_raises(EOFError) { program.get("/die") }
    200.times { assert_equal("200", program.get.code) }
    program.wait_for(/is ready/, 3)
    after = wait_until("the new one serves") { (found = pids(program, 60)) && found.size == 2 && found }

    assert_equal(1, (before & after).size)
  end

  def test_hup_replaces_the_workers_and_no_request_fails
    program = workers(2)
    write("name", "two")
    names = while_asked(program, until_said: "two") do
      program.signal(:HUP)
      program.wait_for(/is ready/, 4)
      wait_until("the new ones serve alone") { Array.new(20) { program.get.body.split.first }.uniq == ["two"] }
    end

    assert_equal(%w[one two], names.uniq.sort)
  end

  def test_hup_keeps_the_workers_when_the_application_does_not_load
    program = workers(1)
    write("config.ru", "raise 'broken'")
    program.signal(:HUP)
    program.wait_for(/worker 0 stays/)
    sleep(1.5) # until another one would be started
    program.signal(:HUP)
    program.wait_for(/worker 0 stays/, 2)

    assert_equal("one", program.get.body.split.first)
    assert_empty(program.said.grep(/takes its place/), "it would serve beside the one that stays")
  end

  def test_usr2_replaces_the_program_and_no_request_fails
    [0, 2].each do |count|
      write("name", "one")
      program = serve_in(count)
      write("name", "two")
      names = while_asked(program, until_said: "two") do
        program.signal(:USR2)
        program.wait_for(/listening on/, 2)
        wait_until("the new ones serve alone") { Array.new(20) { program.get.body.split.first }.uniq == ["two"] }
      end

      assert_equal(%w[one two], names.uniq.sort)
      program.signal(:TERM)

      assert_predicate(program.wait, :success?)
    end
  end

  # An application may take a minute to load.
  def test_a_signal_while_the_workers_load_the_application
    write("config.ru", "warn('loads'); sleep(60)")
    %i[TERM INT].each do |signal|
      program = serve("--workers", "2", until_said: /loads/, times: 2)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      program.signal(signal)

      assert_predicate(program.wait, :success?)
      assert_operator(Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, :<, 20)
      assert_equal(2, program.said.grep(/loads/).size, "another one was started")
    end
  end

  def test_a_signal_while_a_worker_is_replaced
    program = workers(1)
    write("config.ru", "warn('loads'); sleep(60)")
    program.signal(:HUP)
    program.wait_for(/loads/)
    program.signal(:TERM)

    assert_predicate(program.wait, :success?)
    assert_empty(program.said.grep(/worker 0 stays/))
  end

  # TERM is not lost because a reload is under way.
  def test_a_server_that_is_to_stop_is_not_replaced
    [[0, :HUP], [0, :USR2], [2, :USR2]].each do |count, first|
      program = serve_in(count)
      answer = Thread.new { program.get("/?60") rescue $! } # rubocop:disable Style/RescueModifier
      wait_until_begun
      File.delete(path("begun"))
      Process.kill(:STOP, program.pid) if count.positive? # so that it gets both at once
      [first, :TERM, *(:CONT if count.positive?)].each { |signal| program.signal(signal) && sleep(0.3) }
      wait_until("it takes no connections") { refused?(program.port) }
      program.signal(:TERM)

      assert_predicate(program.wait, :success?)
      assert_equal(1, program.said.grep(/listening on/).size)
      assert_kind_of(EOFError, answer.value)
    end
  end

  def test_workers_end_with_their_supervisor
    program = workers(2)
    left = pids(program, 60)
    program.signal(:KILL)
    program.wait

    wait_until("they have ended") { left.none? { |pid| alive?(pid) } }
  end

  def test_preload
    write("config.ru", "warn('loaded')\n#{APP}")
    program = workers(2, "--preload")

    assert_equal(1, program.said.grep(/loaded/).size)
  end

  # (With ReusePort=yes each worker has a socket; else they share it.)
  def test_sockets_of_systemd
    script = 'ENV["LISTEN_PID"] = Process.pid.to_s; ENV["LISTEN_FDS"] = "1"; exec(*ARGV, 3 => 3)'
    [[0, false], [2, false], [2, true]].each do |count, reuse|
      tcp = keep(Socket.new(:INET, :STREAM))
      tcp.setsockopt(:SOCKET, :REUSEPORT, reuse)
      tcp.bind(Addrinfo.tcp("127.0.0.1", 0))
      tcp.listen(10)
      port = tcp.local_address.ip_port
      command = [RbConfig.ruby, "-e", script, *ruby_command, EXE, "serve", "--bind", "tcp://127.0.0.1:#{port}"]
      waits = count.zero? ? {} : { until_said: /is ready/, times: count }
      program = serve("--workers", count.to_s, command:, 3 => tcp, **waits)

      assert_equal([port, "one"], [program.port, program.get.body.split.first])
      assert_equal(2, wait_until("both serve") { (found = pids(program)).size == 2 && found }.size) if reuse
    end
  end

  def test_systemd_is_told
    file = path("notify")
    told = keep(Socket.new(:UNIX, :DGRAM))
    told.bind(Addrinfo.unix(file))
    program = serve(env: { "NOTIFY_SOCKET" => file })

    assert_equal("READY=1", told.recv(100))
    program.signal(:TERM)

    assert_equal("STOPPING=1", told.recv(100))
  end

  def test_what_cannot_be
    taken = keep(TCPServer.new("127.0.0.1", 0)).addr[1]
    {
      ["--bind", "tcp://127.0.0.1:#{taken}"] => [1, /Address already in use/],
      ["--bind", "http://a"] => [2, %r{heddle serve: invalid argument: --bind http://a \(must be tcp://[^"]*\)$}],
      ["-bunix:"] => [2, /invalid argument: -bunix: \(must be/],
      ["--bind=ssl://127.0.0.1:0?cert=x"] => [2, /: --bind=ssl\S+ \(the file of cert=x cannot be read\)$/],
      ["--control", "ssl://127.0.0.1"] => [2, %r{: --control ssl://127.0.0.1 \(ssl:// needs cert=FILE\)$}],
      ["--control", "ssl://127.0.0.1?cert=name&key=name"] => [1, /--control: cert=name and key=name cannot be used/],
      ["--workers", "-1"] => [2, /heddle serve: invalid argument: --workers -1/],
      ["--workers", "1#{"0" * 20}"] => [2, /invalid argument: --workers 10+ \(must be from 0 to/],
      ["--workers=-1", "--access-log=log"] => [2, /heddle serve: invalid argument: --workers=-1/],
      ["--workers", "many"] => [2, /heddle serve: invalid argument: --workers many/],
      ["--access-log=log", "--drain", "0"] => [2, /: --drain 0 \(must be a positive number of seconds\)$/],
      ["--access-log", "no/log"] => [2, %r{invalid argument: --access-log no/log \(No such file or directory\)$}],
      ["--drain-delay=-1"] => [2, /invalid argument: --drain-delay=-1 \(must be/],
      ["--preload=1"] => [2, /heddle serve: needless argument: --preload=1$/],
      ["--version"] => [2, /heddle serve: invalid option: --version$/],
      ["-p", "70000"] => [2, /invalid argument: -p 70000 \(must be from 0 to 65535\)$/],
      ["--port=-5"] => [2, /invalid argument: --port=-5 \(must be/],
      ["--host", "name.invalid"] => [2, /invalid argument: --host name.invalid \(has no address here: .*\)$/],
      ["--host="] => [2, /invalid argument: --host= \(must not be empty\)$/],
      ["--control", "9293"] => [2, /heddle serve: invalid argument: --control 9293 \(must be/],
      ["other.ru"] => [2, /heddle serve: there is no file other.ru/],
      %w[a b] => [2, /unexpected argument: b/],
      ["--max-body-size", "0"] => [2, /invalid argument: --max-body-size 0 \(must be a positive Integer\)$/],
      ["--max-idle=0"] => [2, /invalid argument: --max-idle=0 \(must be a positive number of seconds\)$/]
    }.each do |arguments, (status, text)|
      outcome = run_command(*ruby_command, EXE, "serve", *arguments, chdir: @dir)

      assert_equal(status, outcome.status.exitstatus, outcome.err)
      assert_match(text, outcome.err)
      assert_equal(1, outcome.err.lines.grep_v(%r{/gems/}).size, outcome.err) # (they have warnings of their own)
    end
    refute_path_exists(path("log"))
  end

  # Ruby 3.3 has an OptionParser that refuses such options where they have to be exact.
  def test_with_and_without_http2
    %w[--http2 --no-http2].each do |option|
      missing = TestSupport::Clients.load("protocol-http2", "protocol/http2") if option == "--http2"
      next if missing

      assert_equal("200", serve(option).get.code)
    end
  end

  # (Its address is in brackets only as a part of a URL.)
  def test_ipv6
    ["::1", "[::1]"].each do |host|
      program = serve("--host", host, "--port", "0", command: [*ruby_command, EXE, "serve"])

      assert(program.said.any? { |line| line.include?("tcp://[::1]:") })
    end
  end

  def test_rackup
    missing = TestSupport::Clients.load("rackup")
    skip(missing) if missing
    rackup = Gem.bin_path("rackup", "rackup")
    program = serve("-o", "127.0.0.1", "-p", "0", command: [*ruby_command, rackup, "-s", "heddle", "-E", "production"])

    assert_equal("one #{program.pid}", program.get.body)
    program.signal(:INT)
    program.wait
  end

  private

  def refused?(port)
    TCPSocket.new("127.0.0.1", port).close
    false
  rescue Errno::ECONNREFUSED
    true
  end
end
