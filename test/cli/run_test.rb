# frozen_string_literal: true

# bin/test: takes 20 s, 0.7 of a core

require_relative "run_case"

# heddle run: a script behaves as under plain Ruby. Most tests run it under both and compare everything that comes out.
class RunTest < RunCase
  def test_runs_as_a_task
    script("p Fiber.current_scheduler.class, Fiber.current.blocking?, Thread.current == Thread.main")

    assert_equal("Heddle::Scheduler\nfalse\ntrue\n", heddle("script.rb").out)
  end

  def test_what_the_script_sees_of_itself
    out = assert_same(<<~RUBY, "a", "--help", "--", "-x", "")
      p __FILE__, $0, $PROGRAM_NAME, __FILE__ == $0, __dir__, ARGV, self, __LINE__, __method__
      p defined?(OptionParser), defined?(JSON), defined?(DATA)
      def helper; end
      p Object.private_method_defined?(:helper)
    RUBY

    assert_includes(out, %(["a", "--help", "--", "-x", ""]))
  end

  def test_local_variables_are_those_of_a_main_program
    out = assert_same(<<~RUBY)
      require "erb"
      name = "Ann"
      p TOPLEVEL_BINDING.local_variables, TOPLEVEL_BINDING.receiver, defined?(lib)
      [1].each { name = "Bob" }
      puts ERB.new("hello <%= name %>").result
      TOPLEVEL_BINDING.eval("name = 'Cy'; made_later = 3")
      p name, TOPLEVEL_BINDING.eval("made_later")
      later = 1
    RUBY

    assert_includes(out, "hello Bob")
    assert_same("class A\n  inner = 1\n  p TOPLEVEL_BINDING.local_variables\nend")
    ["", "# nothing"].each { |code| assert_same(code) }
  end

  # Ruby gives a fiber an eighth of the room that a main program has for its calls.
  def test_calls_as_deep_as_in_plain_ruby
    name = script(<<~RUBY)
      def depth(n) = ($depth = n) && depth(n + 1)
      def each_depth(n) = ($depth = n) && [0].each { each_depth(n + 1) }
      [:depth, :each_depth].each do |way|
        __send__(way, 1)
      rescue SystemStackError
        puts $depth
      end
    RUBY
    plain, own = [plain(name), heddle(name)].map { |outcome| outcome.out.split.map(&:to_i) }

    assert_equal(2, own.size)
    plain.zip(own) { |expected, depth| assert_operator(depth, :>, expected * 0.8) }
  end

  def test_the_size_of_the_stacks_is_not_inherited
    assert_same("p ENV.keys.grep(/STACK/), `env`.lines.grep(/STACK/)")
  end

  def test_a_chosen_size_of_the_stacks_stays
    script("p ENV.keys.grep(/STACK/), RubyVM::DEFAULT_PARAMS[:fiber_vm_stack_size]")
    outcome = heddle("script.rb", env: { "RUBY_FIBER_VM_STACK_SIZE" => "300000" })

    assert_match(/\A\["RUBY_FIBER_VM_STACK_SIZE"\]\n(29|30)\d{4}$/, outcome.out)
  end

  def test_require_relative_and_symlinks
    script(%(require_relative "other"\np __FILE__, __dir__))
    File.write(File.join(@dir, "other.rb"), "p [:other, $0]")
    FileUtils.mkdir(File.join(@dir, "bin"))
    File.symlink("../script.rb", File.join(@dir, "bin/link"))

    %w[script.rb ./script.rb bin/link].push(File.join(@dir, "script.rb")).each do |name|
      assert_equal(plain(name).out, heddle(name).out, name)
    end
  end

  # A script may be named like a library.
  def test_takes_the_file_not_the_library
    script("puts :mine", name: "set.rb")

    assert_equal("mine\n", heddle("set.rb").out)
  end

  def test_standard_input
    assert_same("p gets, $stdin.read", input: "one\ntwo\nthree")
    assert_same("p ARGF.read", "script.rb")
    assert_same("puts $<.each_line.map(&:upcase)", input: "a\nb\n")
  end

  def test_data
    assert_same("p DATA.gets, DATA.read, DATA.path, DATA.class\n__END__\none\ntwo\n")
    assert_same("p DATA.read\n__END__\n")
    assert_same("x = <<TEXT\n__END__\nTEXT\np x, defined?(DATA)\n")
    assert_same("p DATA.read\nx = <<TEXT\n__END__\nTEXT\n=begin\n__END__\n=end\n__END__\nreal\n")
  end

  def test_exit_statuses
    ["", "exit", "exit 3", "exit false", "exit! 4", "abort", "abort 'sorry'", "at_exit { exit 5 }", "raise 'oops'",
     "throw :nothing", "nonsense", "raise SystemExit", "at_exit { p $!.class }; exit 6",
     "return", "Thread.new { exit 7 }.join", "begin; exit 8; ensure; puts 9; end"].each { |code| assert_same(code) }
  end

  def test_the_report_of_an_error
    assert_same(<<~RUBY)
      def deeper = raise(ArgumentError, "deep")
      def deep
        deeper
      rescue ArgumentError
        raise KeyError, "with a cause"
      end
      deep
    RUBY
  end

  # The command of an installed gem is a file of RubyGems, which loads exe/heddle.
  def test_the_report_of_an_error_of_the_installed_command
    name = script("def deep = raise(ArgumentError, 'deep')\ndeep\n")
    wrong = "#{@dir}/wrong.rb"
    File.write(wrong, "puts 1\ndef (\n")
    starter = "#{@dir}/heddle"
    File.write("#{@dir}/loading.rb", "def start = load(#{EXE.inspect})\n")
    File.write(starter, "require_relative 'loading'\nstart\n")

    assert_equal(plain(name).err, plain(starter, "run", name).err)
    refute_includes(plain(starter, "run", wrong).err, "loading.rb")
  end

  def test_the_report_of_a_syntax_error
    outcome = heddle(script("puts 1\ndef (\n"))

    assert_equal(["", 1], [outcome.out, outcome.status.exitstatus])
    assert_match(/script\.rb.*syntax error|script\.rb:\d+: /, outcome.err)
    refute_includes(outcome.err, "lib/heddle")
  end

  def test_order_of_the_end
    assert_same(<<~RUBY)
      END { puts "END" }
      BEGIN { puts "BEGIN" }
      at_exit { puts "at_exit 1" }
      at_exit { puts "at_exit 2"; p $! }
      begin
        exit 3
      ensure
        puts "ensure"
      end
    RUBY
  end

  # Their duties are in `heddle run --help`.
  def test_minitest
    tests = <<~RUBY
      class SomeTest < Minitest::Test
        def test_one = warn(Fiber.scheduler.class)
      end
    RUBY
    outside = heddle(script("require 'minitest/autorun'\n#{tests}"))
    inside = heddle(script("require 'minitest'\n#{tests}\nexit(Minitest.run(ARGV))"))

    assert_equal(["NilClass\n", "Heddle::Scheduler\n"], [outside.err, inside.err])
    [outside, inside].each { |outcome| assert_match(/1 runs, 0 assertions, 0 failures/, outcome.out) }
  end

  def test_killed_by_a_signal
    %w[INT TERM HUP KILL USR1 ALRM].each do |signal|
      assert_same("at_exit { puts :at_exit }\n$stdout.flush\nProcess.kill(:#{signal}, $$)\nsleep 5")
    end
  end

  def test_signals_from_outside
    %i[INT TERM].each do |signal|
      outcomes = [method(:plain), method(:heddle)].map do |way|
        name = script("begin; Dir.mkdir('ready'); sleep 10; ensure; puts :ensure; end")
        way.call(name) do |pid|
          wait_until { File.exist?(File.join(@dir, "ready")) }
          sleep(0.05)
          Process.kill(signal, pid)
        end
      end
      expected, got = outcomes.map { |outcome| [outcome.out, outcome.status.exitstatus, outcome.status.termsig] }

      assert_equal(expected, got)
    end
  end

  def test_trap
    assert_same(%(trap("TERM") { puts :trapped }\nProcess.kill(:TERM, $$)\nsleep 0.1\nputs :on))
  end

  def test_waits_for_the_remaining_fibers
    script("Fiber.schedule { sleep 0.1; puts :scheduled }\nHeddle.spawn { sleep 0.2; puts :spawned }\nputs :main")

    assert_equal("main\nscheduled\nspawned\n", heddle("script.rb").out)
  end

  def test_exit_and_errors_end_at_once
    { "exit 3" => 3, "raise 'oops'" => 1, "abort" => 1, "Fiber.schedule { exit 4 }; sleep" => 4 }.each do |last, status|
      script("at_exit { puts :at_exit }\nFiber.schedule { begin; sleep 100; ensure; puts :ensure; end }\n#{last}")
      outcome = nil
      took = elapsed { outcome = heddle("script.rb") }

      assert_equal(["ensure\nat_exit\n", status], [outcome.out, outcome.status.exitstatus], last)
      assert_operator(took, :<, 50, last)
    end
  end

  def test_missing_script
    outcome = heddle("nowhere.rb", chdir: tempdir)

    assert_equal(["", "heddle run: No such file or directory -- nowhere.rb\n", 1],
                 [outcome.out, outcome.err, outcome.status.exitstatus])
  end

  def test_a_folder_is_no_script
    outcome = heddle(".", chdir: tempdir)

    assert_equal(["heddle run: Is a directory -- .\n", 1], [outcome.err, outcome.status.exitstatus])
  end

  def test_program_on_standard_input
    program = "p $0, __FILE__, ARGV, DATA.read\n__END__\nthe rest\n"
    @dir = tempdir
    expected, got = [plain("-", "a", input: program), heddle("-", "a", input: program)].map(&:out)

    assert_equal(expected, got)
    assert_includes(got, "the rest")
  end

  def test_backend
    script("puts Fiber.current_scheduler.backend")

    assert_equal("epoll\n", heddle("--backend", "epoll", "script.rb").out)
    assert_equal("epoll\n", heddle("--backend=epoll", "script.rb").out)
    assert_equal("epoll\n", heddle("script.rb", env: { "HEDDLE_BACKEND" => "epoll" }).out)
    outcome = heddle("--backend", "select", "script.rb")

    assert_equal(["", "heddle run: invalid argument: --backend select (uring, epoll or poll)\n", 2],
                 [outcome.out, outcome.err, outcome.status.exitstatus])
    outcome = heddle("script.rb", env: { "HEDDLE_BACKEND" => "select" })

    assert_equal(["", 1, 1], [outcome.out, outcome.err.lines.size, outcome.status.exitstatus])
    assert_includes(outcome.err, "HEDDLE_BACKEND: \"select\" is unknown")
  end
end
