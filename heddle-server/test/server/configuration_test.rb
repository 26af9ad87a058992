# frozen_string_literal: true

# bin/test: takes 25 s, 0.6 of a core

require_relative "../test_helper"
require "etc"
require "support/serve_case"

# What `heddle serve` takes from a configuration file and from the environment.
class ServeConfigurationTest < HeddleTest
  include TestSupport::ServeCase

  CONFIGURATION = <<~RUBY
    note = ->(*words) { File.write("notes", "\#{words.join(" ")}\\n", mode: "a") }
    bind "tcp://127.0.0.1:0"
    workers 1
    environment "staging"
    http2 false
    max_body_size 1000
    before_fork { |number| note.("before_fork", number) }
    on_worker_boot { |number| note.("on_worker_boot", number) }
    on_worker_shutdown { |number| note.("on_worker_shutdown", number) }
    on_booted { note.("on_booted") }
    on_restart { note.("on_restart") }
  RUBY

  def notes = File.readlines(path("notes"), chomp: true)

  def test_options_and_hooks_of_a_file
    write("serve.rb", CONFIGURATION)
    write("config.ru", <<~RUBY)
      File.write("notes", "loaded in \#{ENV.values_at("RACK_ENV", "RAILS_ENV")}\\n", mode: "a")
      #{APP}
    RUBY
    program = serve("--config", "serve.rb", bind: nil, until_said: /is ready/)

    assert_equal("one", ask(program))
    answer = Net::HTTP.post(URI("http://127.0.0.1:#{program.port}/"), "x" * 1001)

    assert_equal("413", answer.code)
    wait_until("it is booted") { notes.size == 4 }

    assert_equal(["before_fork 0", "on_worker_boot 0", 'loaded in ["staging", "staging"]', "on_booted"], notes)
    program.signal(:USR2)
    program.wait_for(/is ready/, 2)

    assert_ends(program)
    assert_equal({ "on_restart" => 1, "before_fork 0" => 2, "on_worker_shutdown 0" => 2 },
                 notes.tally.slice("on_restart", "before_fork 0", "on_worker_shutdown 0"))
  end

  # config/heddle.rb is read if it is there.
  def test_the_command_line_wins
    Dir.mkdir(path("config"))
    write("config/heddle.rb", "bind 'unix:#{path("socket")}'\nworkers 3\nmax_idle 1")
    program = serve("--workers", "0")

    assert_said(program, /\(process #{program.pid}\)$/)
    refute_path_exists(path("socket"))
    assert_ends(program)
  end

  def refused(*arguments, env: {})
    outcome = run_command(*ruby_command.grep_v("-w"), EXE, "serve", *arguments, chdir: @dir, env:)

    refute_predicate(outcome, :success?)
    outcome.err
  end

  def test_mistakes_of_a_file
    { "workers(-1)" => /heddle.rb: invalid argument: --workers=-1/,
      "max_idle" => /heddle.rb: missing argument: --max-idle/,
      "worker 3" => /heddle.rb:1.*undefined method .worker'/, "before_fork" => /before_fork needs a block/ }
      .each do |text, message|
      write("heddle.rb", text)

      assert_match(message, refused("-C", "heddle.rb"))
    end
    assert_match(/invalid argument: --config \S+other.rb \(No such file or directory\)/, refused("-C", "other.rb"))
  end

  def test_a_hook_that_fails
    write("heddle.rb", "on_worker_boot { raise 'no cache' }")
    program = serve("--workers", "1", "-C", "heddle.rb")

    assert_equal(1, program.wait.exitstatus)
    assert_said(program, /no cache/)
  end

  def test_the_environment_has_the_port_and_the_number_of_workers
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    program = serve(bind: nil, env: { "PORT" => port.to_s, "WEB_CONCURRENCY" => "2" }, until_said: /is ready/, times: 2)

    assert_said(program, %r{tcp://0.0.0.0:#{port} })
    assert_equal("one", ask(program))
    assert_ends(program)
    assert_match(/invalid PORT=http in the environment/, refused(env: { "PORT" => "http" }))
    assert_match(/invalid WEB_CONCURRENCY=-1 in the environment/, refused(env: { "WEB_CONCURRENCY" => "-1" }))
  end

  def test_options_win_over_the_environment
    program = serve("--workers", "0", env: { "PORT" => "1", "WEB_CONCURRENCY" => "2" })

    assert_said(program, /tcp:\S+ \(process \d+\)$/)
    assert_ends(program)
  end

  def test_a_file_with_the_number_of_the_process
    program = serve("--pidfile", "pid")

    assert_equal("#{program.pid}\n", File.read(path("pid")))
    program.signal(:USR2)
    program.wait_for(/listening/, 2)

    assert_equal("#{program.pid}\n", File.read(path("pid")))
    assert_ends(program)
    refute_path_exists(path("pid"))
    assert_match(%r{--pidfile \S+/no/pid cannot be written \(No such file or directory\)},
                 refused("--pidfile", "no/pid", "-p0"))
  end

  def test_a_folder_that_is_not_there
    assert_match(%r{invalid argument: --directory \S+/no \(No such file or directory\)}, refused("--directory", "no"))
  end
end
