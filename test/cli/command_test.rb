# frozen_string_literal: true

# bin/test: takes 15 s, 0.6 of a core

require_relative "../test_helper"

# The command as a whole: version, help, what it refuses.
class CommandTest < HeddleTest
  EXE = File.expand_path("../../exe/heddle", __dir__)

  def heddle(*args, **options)
    run_command(*ruby_command, "--disable=gems", "-rrbconfig", EXE, *args, **options) # (net/http needs it)
  end

  def test_prints_its_version
    outcome = heddle("--version")

    assert_equal(["heddle #{Heddle::VERSION}\n", "", 0], [outcome.out, outcome.err, outcome.status.exitstatus])
  end

  def test_help_names_every_command
    outcome = heddle("--help")

    assert_equal(0, outcome.status.exitstatus)
    %w[run demo doctor help].each { |name| assert_match(/^  heddle #{name} /, outcome.out) }
  end

  def test_help_of_each_command
    %w[run demo doctor].each do |name|
      asked = [heddle("help", name), heddle(name, "--help")]

      asked.each { |outcome| assert_equal(["", 0], [outcome.err, outcome.status.exitstatus]) }
      assert_equal(*asked.map(&:out))
      assert_match(/\Ausage: heddle #{name}/, asked.first.out)
    end
  end

  def test_other_ways_to_ask_for_help
    [%w[help help], %w[help --help], %w[-h], %w[help]].each do |args|
      assert_equal(heddle("--help").out, heddle(*args).out)
    end
    [%w[--help run], %w[run -h], %w[run --backend epoll --help], %w[run -S -e 1 -h]].each do |args|
      assert_equal(heddle("help", "run").out, heddle(*args).out)
    end

    assert_equal(heddle("help", "demo").out, heddle("demo", "--requests=5", "-h", "weave").out)
  end

  def test_without_a_command
    outcome = heddle

    assert_equal(["", 2], [outcome.out, outcome.status.exitstatus])
    assert_match(/\Ausage: heddle COMMAND/, outcome.err)
  end

  def test_refuses_in_one_line_that_names_the_mistake
    {
      %w[weave] => "weave", %w[help weave] => "weave", %w[--weave] => "--weave",
      %w[doctor --weave] => "--weave", %w[run --weave x.rb] => "--weave", %w[run] => "name a script",
      %w[run --backend] => "missing argument: --backend (uring or epoll)",
      %w[run --backend=] => "missing argument: --backend", ["run", "--backend", "", "x.rb"] => "missing argument",
      %w[run --backend x.rb] => "invalid argument: --backend x.rb (uring or epoll)",
      %w[run --backend=select x.rb] => "--backend select", %w[run --backend epoll] => "name a script",
      %w[run --] => "name a script", %w[run -e] => "missing argument: -e",
      %w[doctor weave] => "weave", %w[doctor --json=1] => "--json=1",
      %w[--version weave] => "weave", %w[-v --json] => "--json", %w[--help run weave] => "weave",
      %w[help run weave] => "weave", %w[help help weave] => "weave", [""] => "unknown command", %w[--] => "--",
      %w[demo --json=1] => "argument: --json=1", %w[demo --req 5] => "--req", %w[demo --requests=] => "--requests",
      %w[demo --requests] => "missing argument: --requests", %w[demo --delays] => "missing argument: --delays",
      %w[demo --processes] => "missing argument: --processes", %w[demo --url] => "missing argument: --url",
      %w[demo --url=] => "--url", %w[demo --delays=] => "--delays", %w[demo --requests=x] => "--requests=x",
      %w[demo --weave] => "--weave", %w[demo weave] => "weave",
      %w[demo --requests x] => "--requests x", %w[demo --requests=0] => "--requests=0 (must be at least 1)",
      %w[demo --delays 1,x] => "--delays 1,x", %w[demo --delays 40000] => "--delays 40000",
      %w[demo --processes 0] => "--processes 0 (must be at least 1)", %w[demo --version] => "--version",
      %w[demo --processes 2 --requests 1] => "--processes 2",
      %w[demo --url ftp://localhost/] => "--url ftp://localhost/", %w[demo --url http://] => "--url http://",
      %w[demo --url http://localhost/ --delays 0] => "--delays"
    }.each { |args, mistake| assert_refused(args, mistake) }
  end

  def assert_refused(args, mistake)
    outcome = heddle(*args)

    assert_equal(["", 2, 1], [outcome.out, outcome.status.exitstatus, outcome.err.lines.size], args.join(" "))
    assert_includes(outcome.err, mistake)
    assert_operator(outcome.err, :start_with?, "heddle")
  end

  def test_the_server_names_all_gems_that_it_needs
    outcome = heddle("serve")

    assert_equal(["", 1, 1], [outcome.out, outcome.status.exitstatus, outcome.err.lines.size])
    assert_match(/^heddle serve: .* needs the gems protocol-http1 ~> \S+ and protocol-rack ~> \S+: /, outcome.err)
    assert_match(/ `gem install protocol-http1:'~> \S+' protocol-rack:'~> \S+'` \(for HTTP.2 also /, outcome.err)
  end

  # From a folder of its own, without bin/ruby's load path: as RubyGems starts it.
  def test_finds_its_library
    outcome = run_command(RbConfig.ruby, EXE, "--version", chdir: tempdir)

    assert_equal("heddle #{Heddle::VERSION}\n", outcome.out)
  end
end
