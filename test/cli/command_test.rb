# frozen_string_literal: true

# bin/test: takes 15 s, 0.6 of a core

require_relative "../test_helper"
require "fileutils"

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
    %w[run serve demo doctor help].each { |name| assert_match(/^  heddle #{name} /, outcome.out) }
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
      %w[weave] => "weave", %w[options] => "options", ["\xff"] => "unknown command",
      %w[help weave] => "weave", %w[--weave] => "--weave",
      %w[doctor --weave] => "--weave", %w[run --weave x.rb] => "--weave", %w[run] => "name a script",
      %w[run --backend] => "missing argument: --backend (uring, epoll or poll)",
      %w[run --backend=] => "missing argument: --backend", ["run", "--backend", "", "x.rb"] => "missing argument",
      %w[run --backend x.rb] => "invalid argument: --backend x.rb (uring, epoll or poll)",
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

  # Without the server's lib/ on the load path.
  def test_serve_says_which_gem_is_missing
    [%w[serve], %w[serve --port 80], %w[help serve]].each do |args|
      outcome = run_command(RbConfig.ruby, "--disable=gems", EXE, *args)

      assert_equal(["", 1], [outcome.out, outcome.status.exitstatus])
      assert_equal("heddle serve: this command is in the gem heddle-server: put it into the Gemfile, or run `gem " \
                   "install heddle-server`\n", outcome.err)
    end
  end

  COMMAND = <<~RUBY
    require "heddle/cli/options"

    command = Object.new
    def command.call(args)
      count = 1
      options = Heddle::CLI::Options.new do |on|
        on.on("--count N", Integer) { |n| count = n.positive? ? n : Heddle::CLI::Options.refuse(n, "must be positive") }
        on.on("--help") { return :help }
      end
      rest = options.parse(args)
      Heddle::CLI.make_room
      deep = Fiber.new { Fiber.yield(0, (dive = ->(n) { n.zero? || dive.(n - 1) }).call(5_000)) }
      puts [rest, count, deep.resume.last, Process.getrlimit(:NOFILE).uniq.size, Heddle::CLI.environment.size].inspect
      rest.size
    rescue OptionParser::ParseError => e
      raise Heddle::CLI::UsageError, "heddle greet: \#{e.message}"
    end
    def command.help = "usage: heddle greet\n"
    Heddle::CLI.add("greet", command)
  RUBY

  # A command of another gem has its options, its exit status, deep stacks and all files that the system allows.
  def test_a_gem_adds_a_command
    folder = File.join(tempdir, "heddle/cli")
    FileUtils.mkdir_p(folder)
    File.write(File.join(folder, "greet.rb"), COMMAND)
    File.write(File.join(folder, "broken.rb"), 'require "there/is/none"')
    greet = ->(*args) { run_command(RbConfig.ruby, "-I", File.dirname(folder, 2), EXE, *args) }
    outcome = greet["greet", "--count", "3", "a", "b"]

    assert_equal(["[[\"a\", \"b\"], 3, true, 1, 3]\n", "", 2],
                 [outcome.out, outcome.err, outcome.status.exitstatus])
    assert_equal(["usage: heddle greet\n"] * 2, [greet["help", "greet"], greet["greet", "--help"]].map(&:out))
    { "--cou 3" => "invalid option: --cou", "--count 0" => "invalid argument: --count 0 (must be positive)" }
      .each do |args, mistake|
        outcome = greet["greet", *args.split]

        assert_equal(["heddle greet: #{mistake}\n", 2], [outcome.err, outcome.status.exitstatus])
      end
    assert_match(%r{cannot load such file -- there/is/none}, greet["broken"].err)
  end

  # From a folder of its own, without bin/ruby's load path: as RubyGems starts it.
  def test_finds_its_library
    outcome = run_command(RbConfig.ruby, EXE, "--version", chdir: tempdir)

    assert_equal("heddle #{Heddle::VERSION}\n", outcome.out)
  end
end
