# frozen_string_literal: true

# bin/test: takes 15 s, 0.3 of a core

require "pty"
require_relative "../../test_helper"

# Standard input, output and error of a process, as a shell hands them on: in blocking mode, shared with others.
contract "Stdin" do
  # Runs the code in a process, under the backend, while a second fiber takes turns. The code waits until it has had
  # some: by itself, or for who reads on stderr that it has.
  def script(code, reference_code: code, say: false)
    return "Thread.new { loop { sleep 0.005 } }\n#{reference_code}" if reference?

    <<~RUBY
      Heddle.run(backend: #{backend.inspect}) do
        turns = 0
        running = true
        Fiber.schedule do
          while running
            turns += 1
            $stderr.syswrite("ran\n") if #{say} && turns == 5
            sleep(0.001)
          end
        end
        #{code}
        running = false
        warn("others stood still") if turns < 3
      end
    RUBY
  end

  def options = reference? ? { heddle: false } : {}

  # Waits until the child's other fiber has run, while the first one waited; not for ever, if that holds it up.
  def wait_for_others(errors)
    assert_equal("ran\n", errors.gets) if !reference? && errors.wait_readable(25)
  end

  # Feeds the child's stdin late, a line at a time: when it asks for them.
  def run_fed(code, reader, writer)
    command = ruby_command
    command << "-rheddle" unless reference?
    out_read, out_write = pipe
    code = %($stderr.syswrite("begun\n"); #{code})
    pid = spawn(*command, "-e", script(code, say: !writer.nil?), in: reader, out: out_write, err: out_write)
    [reader, out_write].each(&:close)

    assert_equal("begun\n", out_read.gets)
    wait_for_others(out_read) if writer
    yield writer
    result = out_read.read
    Process.wait(pid)
    result
  end

  {
    "gets" => "2.times { puts $stdin.gets.upcase }",
    "kernel_gets" => "2.times { puts gets.upcase }",
    "each_line" => "$stdin.each_line.first(2).each { |line| puts line.upcase }",
    "sysread" => "2.times { puts $stdin.sysread(100).upcase }",
    "readpartial" => "2.times { puts $stdin.readpartial(100).upcase }",
    "read" => "puts $stdin.read.upcase"
  }.each do |name, code|
    define_method("test_#{name}_from_a_pipe") do
      reader, writer = pipe
      blocking_mode(reader)
      said = run_fed(code, reader, writer) do |input|
        input.write("one\n")
        sleep(0.3)
        input.write("two\n")
        input.close
      end

      assert_equal("ONE\nTWO\n", said)
    end
  end

  def test_gets_from_a_terminal
    master, slave = PTY.open.each { |io| keep(io) }
    said = run_fed("2.times { puts $stdin.gets.upcase }", slave, master) do |input|
      input.puts("one")
      sleep(0.3)
      input.puts("two")
    end

    assert_equal("ONE\nTWO\n", said)
  end

  def test_a_file_as_stdin
    path = File.join(tempdir, "input")
    File.write(path, "one\ntwo\n")
    outcome = run_command(*ruby_command, *(reference? ? [] : ["-rheddle"]), "-e",
                          script("puts $stdin.read.upcase; sleep 0.001 until turns > 2"), input: "")

    assert_equal(["\n", ""], [outcome.out, outcome.err])
    reader = keep(File.open(path))
    said = run_fed("puts $stdin.gets.upcase, $stdin.read.upcase; sleep 0.001 until turns > 2", reader, nil) { nil }

    assert_equal("ONE\nTWO\n", said)
  end

  def test_stdin_at_its_end
    outcome = run_ruby(script("p $stdin.gets, $stdin.read; sleep 0.001 until turns > 2"), input: "", **options)

    assert_equal(["nil\n\"\"\n", ""], [outcome.out, outcome.err])
  end

  # A slow reader of stdout must not stop the other fibers.
  def test_a_full_stdout
    reader, writer = pipe
    blocking_mode(writer)
    code = "$stdout.write('x' * 500_000)"
    command = ruby_command
    command << "-rheddle" unless reference?
    err_read, err_write = pipe
    pid = spawn(*command, "-e", script(code, say: true), out: writer, err: err_write)
    [writer, err_write].each(&:close)
    reader.wait_readable
    wait_for_others(err_read)

    assert_equal(500_000, reader.read.bytesize)
    assert_equal("", err_read.read)
    Process.wait(pid)
  end

  def test_output_order_is_kept
    code = "50.times { |i| Fiber.schedule { puts i; sleep 0; $stderr.puts i } }; sleep 0.001 until turns > 60"
    outcome = run_ruby(script(code, reference_code: "50.times { |i| puts i; $stderr.puts i }"), **options)
    expected = Array.new(50) { |i| "#{i}\n" }.join

    assert_equal([expected, expected], [outcome.out, outcome.err])
  end
end
