# frozen_string_literal: true

require_relative "../test_helper"
require "support/examples"

contract "RunCommandsExample" do
  include TestSupport::Examples

  def test_runs_them_at_the_same_time
    folder = tempdir
    # Each waits for the other.
    commands = %w[one two].permutation.map do |mine, other|
      "echo #{mine}; touch #{folder}/#{mine}; until test -e #{folder}/#{other}; do sleep 0.01; done; echo end >&2"
    end
    program = run_example("run_commands", "-j", 2, *commands)

    assert_equal(["[1] end", "[1] one", "[2] end", "[2] two"], program.out.lines(chomp: true).sort)
    assert_equal("2 of 2 commands succeeded\n", program.err)
    assert_predicate(program.status, :success?)
  end

  def test_no_more_than_allowed
    file = File.join(tempdir, "running")
    command = "mkdir #{file} && sleep 0.05 && rmdir #{file}" # fails if another one runs
    program = run_example("run_commands", "-j", 1, *[command] * 4)

    assert_equal("4 of 4 commands succeeded\n", program.err)
  end

  def test_tells_what_has_failed
    program = run_example("run_commands", "exit 3", "true", "kill -9 $$", "/no/such/program")

    assert_equal(1, program.status.exitstatus)
    assert_equal("exit 3: exit 3\nkill -9 $$: SIGKILL (signal 9)\n/no/such/program: exit 127\n" \
                 "1 of 4 commands succeeded\n", program.err)
  end

  def test_commands_from_the_standard_input
    file = File.join(tempdir, "commands")
    File.write(file, "echo one\n\necho two\n")

    assert_equal("[1] one\n[2] two\n", run_example("run_commands", "-j", 1, input: file).out)
  end

  def test_ctrl_c_ends_the_commands
    program = start_example("run_commands", "-j", 2, "echo $$; sleep 1000 & sleep 1000", "echo $$; exec sleep 1000")
    pids = Array.new(2) { |number| Integer(heard(program, /^\[#{number + 1}\] (\d+)$/, :out)[1]) }
    program.signal(:INT)

    assert_equal(1, ended(program).exitstatus)
    assert_equal("ended by Ctrl-C\n", program.err)
    pids.each { |pid| wait_until("the end of a command") { none_in_group?(pid) } }
  end

  def none_in_group?(pid)
    Process.kill(0, -pid) && nil
  rescue Errno::ESRCH
    true
  end
end
