# frozen_string_literal: true

# bin/test: takes 6 s, 0.6 of a core

require "tmpdir"
require_relative "../../test_helper"

# Heddle.command: programs that end with the task that has started them.
contract "Command" do
  heddle_only "Heddle.command"

  def in_run(&) = Heddle.run(backend: backend, &)

  # Prints the process number of the group, and waits.
  def waiting(*before) = ["sh", "-c", [*before, "echo $$", "sleep 300 & sleep 300"].join("; ")]

  # The state and the group of each process (proc(5)).
  def processes
    Dir.glob("/proc/[0-9]*/stat").filter_map do |file|
      File.read(file)[/.*\) (.*)/m, 1].split.values_at(0, 2)
    rescue SystemCallError
      nil
    end
  end

  # (Who waits for its zombies is the system's affair.)
  def assert_nothing_left(group)
    wait_until("the end of the group") { processes.none? { |state, of| state != "Z" && of == group.to_s } }

    assert_raises(Errno::ECHILD) { Process.wait }
  end

  def test_its_output_and_its_status
    in_run do
      result = Heddle.command({ "NAME" => "heddle" }, "sh", "-c", "echo $NAME; echo oops >&2; exit 3")

      assert_equal(["heddle\n", "oops\n", 3, false],
                   [result.out, result.err, result.status.exitstatus, result.success?])
      assert_predicate(Heddle.command("true"), :success?)
      refute_predicate(Heddle.command("sh", "-c", "kill -9 $$"), :success?)
    end
  end

  def test_input
    in_run do
      assert_equal("x" * 300_000, Heddle.command("cat", input: "x" * 300_000).out)
      assert_equal("abc", Heddle.command("cat", input: %w[a b c]).out)
      assert_equal("", Heddle.command("cat").out)
      reader, writer = pipe
      writer.write("piped") && writer.close

      assert_equal("piped", Heddle.command("cat", input: reader).out)
    end
  end

  # Neither an endless input nor one that never comes keeps the call from ending.
  def test_a_program_that_reads_no_input
    in_run do
      assert_equal("a", Heddle.command("head", "-c", "1", input: ["a"].cycle).out)
      assert_predicate(Heddle.command("true", input: pipe.first), :success?)
    end
  end

  def test_input_that_fails
    input = Enumerator.new { raise IOError, "no input" }

    error = assert_raises(IOError) { in_run { Heddle.command("cat", input:) } }
    assert_equal("no input", error.message)
    assert_raises(Errno::ECHILD) { Process.wait }
  end

  # As from Open3 and backticks.
  def test_the_encoding_of_its_output
    in_run do
      [{}, { max_output: 100 }].each do |options|
        assert_equal("Grüße", Heddle.command("printf", "Grüße", **options).out)
      end
      assert_equal(Encoding.default_external, Heddle.command("true", max_output: 1).out.encoding)
    end
  end

  def test_lines
    lines = []
    result = in_run { Heddle.command("printf", 'one\ntwo\nthree') { |line| lines << line } }

    assert_equal([%W[one\n two\n three], ""], [lines, result.out])
  end

  def test_others_run_meanwhile
    in_run do
      order = []
      Heddle.spawn { Heddle.command("cat", input: "x").success? and order.push(:command) }
      Heddle.spawn { order << :other }
      sleep(0.001) until order.size == 2

      assert_equal(%i[other command], order)
    end
  end

  def test_too_long_output
    [[%w[yes], nil], [%w[yes], proc {}], [["sh", "-c", "yes >&2"], nil], [["sh", "-c", "cat /dev/zero"], proc {}]]
      .each do |command, block|
        error = assert_raises(Heddle::OutputTooLong) { in_run { Heddle.command(*command, max_output: 1000, &block) } }

        assert_match(/more than 1000 bytes/, error.message)
        assert_raises(Errno::ECHILD) { Process.wait }
      end
    assert_equal("x" * 1000, in_run { Heddle.command("printf", "x" * 1000, max_output: 1000).out })
  end

  # -- what ends the program -----------------------------------------------------------------------------------------

  {
    timeout: lambda do |test, command, note|
      test.assert_raises(Heddle::TimeoutError) { Heddle.command(*command, timeout: 0.3, &note) }
    end,
    error_of_the_block: lambda do |test, command, note|
      test.assert_raises(IOError) { Heddle.command(*command) { |line| note.call(line) && raise(IOError) } }
    end,
    break_of_the_block: ->(_, command, note) { Heddle.command(*command) { |line| note.call(line) && break } },
    scope_that_ends: lambda do |_, command, note|
      Heddle.scope { |scope| Heddle.command(*command) { |line| note.call(line) && scope.cancel } }
    end
  }.each do |name, way|
    define_method("test_#{name}") do
      group = nil
      in_run { way.call(self, waiting, ->(line) { group = Integer(line) }) }

      assert_nothing_left(group)
    end
  end

  def test_a_cancel
    group = nil
    in_run do
      task = Heddle.spawn { Heddle.command(*waiting) { |line| group = Integer(line) } }
      sleep(0.001) until group
      task.cancel.wait

      assert_equal(:cancelled, task.status)
    end
    assert_nothing_left(group)
  end

  def test_the_failure_of_another_task
    group = nil
    assert_raises(EOFError) do
      in_run do
        Heddle.spawn { Heddle.command(*waiting) { |line| group = Integer(line) } }
        sleep(0.001) until group
        raise EOFError
      end
    end
    assert_nothing_left(group)
  end

  # SIGTERM is not enough for these.
  def test_a_program_that_ignores_the_signal
    [waiting("trap '' TERM"), ["sh", "-c", "(trap '' TERM; sleep 300) & echo $$; sleep 300"]].each do |command|
      group = nil
      ended = in_run do
        Heddle.move_on_after(0.3) { Heddle.command(*command, grace: 0.1) { |line| group = Integer(line) } }
      end

      assert_nil(ended)
      assert_nothing_left(group)
    end
  end

  # It may clean up before it ends.
  def test_the_signal_comes_first
    Dir.mktmpdir do |dir|
      file = File.join(dir, "cleaned")
      command = ["sh", "-c", "trap 'echo yes > #{file}; exit' TERM; echo ready; sleep 300 & wait"]
      in_run { Heddle.command(*command) { break } }

      assert_equal("yes\n", File.read(file))
    end
    assert_raises(Errno::ECHILD) { Process.wait }
  end

  # -- what is refused -----------------------------------------------------------------------------------------------

  def test_bad_arguments
    in_run do
      { "command" => -> { Heddle.command }, "input" => -> { Heddle.command("ls", input: 5) },
        "timeout" => -> { Heddle.command("ls", timeout: "1") }, "grace" => -> { Heddle.command("ls", grace: -1) },
        "max_output" => -> { Heddle.command("ls", max_output: 0) }, "out" => -> { Heddle.command("ls", out: $stderr) } }
        .each do |name, call|
          error = assert_raises(ArgumentError, name) { call.call }

          assert_match(/\A#{name}:/, error.message)
        end
    end
  end

  def test_words_that_are_no_strings
    before = descriptor_count
    word = Object.new
    def word.to_str = "hello"

    [[nil], [7], ["echo", 7], ["echo", nil], [["echo", 7]], [{ "A" => 7 }, "ls"], [{ a: "A" }, "ls"]]
      .each do |command|
        error = assert_raises(ArgumentError, command.inspect) { in_run { Heddle.command(*command) } }

        assert_match(/\Acommand: /, error.message)
      end

    in_run do
      assert_equal("hello\n", Heddle.command("echo", word).out)
      assert_equal("new\n", Heddle.command({ "A" => "new", "B" => nil }, %w[sh sh], "-c", "echo $A$B").out)
    end
    assert_operator(descriptor_count, :<=, before + 3, "(a thread keeps what its next run needs)")
  end

  def test_a_program_that_does_not_exist
    before = descriptor_count

    assert_raises(Errno::ENOENT) { in_run { Heddle.command("no-such-program", input: "x") } }
    assert_operator(descriptor_count, :<=, before + 3, "(a thread keeps what its next run needs)")
  end

  def test_no_descriptor_is_left_for_its_pipes
    said = assert_script(<<~RUBY, env: { "HEDDLE_BACKEND" => backend })
      Heddle.run do
        Heddle.command("true")
        Process.setrlimit(:NOFILE, 100)
        held = []
        loop { held << File.open(IO::NULL) } rescue Errno::EMFILE
        held.pop(3).each(&:close)
        Heddle.command("true") rescue puts $!.class
        held << File.open(IO::NULL) << File.open(IO::NULL) << File.open(IO::NULL)
        puts "three are free"
      end
    RUBY

    assert_equal("Errno::EMFILE\nthree are free\n", said)
  end

  def test_without_a_run
    assert_equal("hello\n", Heddle.command("echo", "hello").out)
  end
end
