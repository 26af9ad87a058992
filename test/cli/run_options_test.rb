# frozen_string_literal: true

# bin/test: takes 15 s, 0.7 of a core

require_relative "run_case"

# heddle run -e and -S: as with ruby. Each backend has its turn.
class RunOptionsTest < RunCase
  BACKENDS = Heddle.backends.select { |backend| backend[:available] }.map { |backend| backend[:name] }.freeze

  def setup
    super
    @dir = tempdir
    FileUtils.mkdir(%w[first second].map { |name| File.join(@dir, name) })
    @turns = BACKENDS.cycle
  end

  def file(name, code)
    File.write(File.join(@dir, name), code)
  end

  # Runs both with these arguments and compares stdout, stderr and status. Returns stdout.
  def assert_same_as_ruby(*args, **)
    expected, got = [plain(*args, **), heddle("--backend", @turns.next, *args, **)].map do |outcome|
      [outcome.out, outcome.err, outcome.status.exitstatus, outcome.status.termsig]
    end

    assert_equal(expected, got, args.inspect)
    got.first
  end

  def assert_refused(message, *args, status: 1, **)
    outcome = heddle(*args, **)

    assert_equal(["", "heddle run: #{message}\n", status], [outcome.out, outcome.err, outcome.status.exitstatus])
  end

  def test_time_slices
    code = <<~RUBY
      done = false
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      Heddle.spawn { sleep 0.001; done = true }
      1 until done || Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
      p done
    RUBY
    right = { "HEDDLE_TIME_SLICE" => "0.001" }
    wrong = { "HEDDLE_TIME_SLICE" => "x" }

    assert_equal("true\n", heddle("--time-slice=0.001", "-e", code).out)
    assert_equal("true\n", heddle("--time-slice", "0.001", "-e", code).out)
    assert_equal("true\n", heddle("-e", code, env: right).out)
    none = "Heddle.run(time_slice: false) { puts 1 }"

    assert_equal("1\n", heddle("--time-slice", "0", "-e", none, env: right).out)
    assert_match(/\Aheddle: HEDDLE_TIME_SLICE=x has no effect/, heddle("-e", "1", env: wrong).err)
    assert_refused("time_slice: must be from 0.001 to 10 seconds, not 0.0001", "--time-slice", "0.0001", "-e", "1")
  end

  def test_code_runs_as_a_task
    BACKENDS.each do |backend|
      code = "Fiber.schedule { sleep 0.01; puts :scheduled }; Heddle.spawn { puts Fiber.current_scheduler.backend }"

      assert_equal("#{backend}\nscheduled\n", heddle("--backend", backend, "-e", code).out)
      assert_equal("#{backend}\nscheduled\n", heddle("-e", code, "--backend=#{backend}").out)
    end
  end

  def test_what_code_sees_of_itself
    out = assert_same_as_ruby("-e", <<~RUBY, "a", "-x", "--help", "")
      p __FILE__, $0, $PROGRAM_NAME, __FILE__ == $0, __dir__, ARGV, self, __LINE__, __method__, __ENCODING__
      p defined?(OptionParser), defined?(Ripper), binding.local_variables, RubyVM.keep_script_lines
      def helper; end
      p Object.private_method_defined?(:helper), ENV.keys.grep(/STACK/)
    RUBY

    assert_includes(out, %(["a", "-x", "--help", ""]))
  end

  def test_several_lines
    lines = ["-e", "p __LINE__ +", "-e2", "-e", "p <<A", "-e", " text", "-e", "A", "-e", "p ARGV"]

    assert_equal("3\n\" text\\n\"\n[\"a\"]\n", assert_same_as_ruby(*lines, "a"))
    assert_same_as_ruby("-e", "p [1,\n2]", "-e", "p __LINE__")
    assert_same_as_ruby("-e", "")
  end

  def test_where_the_options_end
    assert_equal("[\"-e\", \"p 2\"]\n", assert_same_as_ruby("-e", "p ARGV", "--", "-e", "p 2"))
    assert_equal("[\"-\", \"-e\"]\n", assert_same_as_ruby("-e", "p ARGV", "-", "-e"))
    assert_equal("[\"script.rb\"]\n", assert_same_as_ruby("-S", "-e", "p ARGV", "script.rb"))
  end

  def test_code_without_a_file
    file("other.rb", "p [:other, $0, __FILE__]")

    assert_same_as_ruby("-e", "require_relative 'other'; load 'other.rb'; p __dir__")
    assert_same_as_ruby("-e", "p defined?(DATA)\n__END__\nthis is no Ruby", input: "rest")
    assert_equal("\"one\\n\"\n\"two\"\n", assert_same_as_ruby("-e", "p gets, ARGF.read", input: "one\ntwo"))
    assert_same_as_ruby("-e", "puts ARGF.read", "other.rb", input: "not this")
  end

  def test_the_encoding_of_code_is_the_locale
    %w[C C.UTF-8].each do |locale|
      assert_same_as_ruby("-e", "p __ENCODING__, ''.encoding", env: { "LC_ALL" => locale })
    end
    assert_same_as_ruby("-e", "p 'é', 'é'.encoding", env: { "LC_ALL" => "C.UTF-8" })
  end

  def test_ends_of_code
    ["exit 3", "abort 'sorry'", "throw :nothing", "1.nonsense", "return; p 1", "Process.kill(:TERM, $$); sleep",
     "BEGIN { p 1 }; END { p 2 }; at_exit { p $! }; exit 4", "def deep = raise(ArgumentError)\n2.times { deep }",
     "begin; raise 'a'; rescue; raise KeyError, 'b'; end", "unused = 1"].each { |code| assert_same_as_ruby("-e", code) }
  end

  def test_code_with_a_syntax_error
    outcome = heddle("-e", "puts 1", "-e", "def (")

    assert_equal(["", 1], [outcome.out, outcome.status.exitstatus])
    assert_match(/\A-e: -e:2: syntax error/, outcome.err)
    refute_includes(outcome.err, "heddle")
  end

  def test_missing_code_or_script
    assert_refused("missing argument: -e", "-e", status: 2)
    assert_refused("missing argument: -e", "-e", "p 1", "-e", status: 2)
    assert_refused("name a script, or give -e", "-S", status: 2)
    assert_refused("invalid option: -Srake", "-Srake", status: 2)
    assert_refused("invalid option: -x", "-e", "p 1", "-x", status: 2)
    assert_refused("invalid argument: --backend select (uring, epoll or poll)", "-e", "p 1", "--backend", "select",
                   status: 2)
  end

  def test_finds_the_script_in_path
    file("second/tool", "p [:second, $0, __FILE__, __dir__, ARGV]")
    file("tool", "p :here")
    FileUtils.mkdir(File.join(@dir, "first/tool"))
    path = %w[first second].map { |name| File.join(@dir, name) }.join(":")

    assert_match(/\A\[:second, "#{@dir}/, assert_same_as_ruby("-S", "tool", "-e", "x", env: { "PATH" => path }))
    file("first/own", "p [:first, $0]")

    { "PATH" => "first:second", "RUBYPATH" => "first" }.each do |name, value|
      assert_same_as_ruby("-S", "own", env: { name => value })
    end
    assert_same_as_ruby("-S", "--", "own", env: { "PATH" => "~/first", "HOME" => @dir })
    assert_same_as_ruby("-S", "tool", env: { "PATH" => "first::second" })
    assert_same_as_ruby("-S", "first/own", env: { "PATH" => @dir })
    assert_same_as_ruby("-S", "tool", env: { "PATH" => nil })
  end

  def test_takes_a_path_as_it_is
    file("tool", "p [:here, $0]")
    file("first/tool", "p [:first, $0]")

    ["./tool", "first/../tool", File.join(@dir, "tool"), "tool"].each do |name|
      assert_same_as_ruby("-S", name, env: { "PATH" => name == "tool" ? "second" : "first" })
    end
    assert_same_as_ruby("-S", "-", "a", input: "p $0, ARGV", env: { "PATH" => "first" })
  end

  def test_what_path_has_not
    assert_refused("No such file or directory -- nowhere", "-S", "nowhere")
    assert_refused("Is a directory -- first", "-S", "first", env: { "PATH" => @dir })
  end

  def test_a_ruby_program_behind_a_shell_script
    file("tool", <<~RUBY)
      #!/bin/sh
      exec ruby -x "$0" "$@"
      #!/usr/bin/env ruby
      p __LINE__, __FILE__, ARGV, DATA.read
      def deep = raise("é")
      deep
      __END__
      the rest
    RUBY
    file("shell", "#!/bin/sh\necho no Ruby\n")

    assert_same_as_ruby("-S", "tool", "a", env: { "PATH" => @dir })
    assert_refused("no Ruby script found in input -- shell", "shell")
  end

  def test_the_command_of_a_gem
    env = { "PATH" => "#{File.dirname(Gem.bin_path("rake", "rake"))}:#{ENV.fetch("PATH")}" }
    file("Rakefile", "task(:default) { p Fiber.current_scheduler.class, $PROGRAM_NAME }")
    outcome = heddle("-S", "rake", "--quiet", env: env)

    assert_match(%r{\AHeddle::Scheduler\n".*/rake"\n\z}, outcome.out, outcome.err)
  end
end
