# frozen_string_literal: true

# bin/test: takes 8 s, 0.4 of a core

require "open3"

require_relative "../test_helper"
require "support/clients/client_matrix"

# A child process is the server: IO.popen with a pipe each way. It is asked in lines.
contract "Popen" do
  extend TestSupport::Clients

  include TestSupport::ClientMatrix
  include TestSupport::ClientMatrix::WrongAfterACancel

  client "open3"

  def title = "IO.popen"
  def client_version = "Ruby's own"
  def asked = TestSupport::Servers::Pause::Children.new(@children.map(&:pid))
  def timeout_errors = [IO::TimeoutError]

  # Each question is answered, so the task has to read all answers.
  def mend(child) = (child.gets.to_i == 1) || flunk("not the answer of the one that was cancelled")

  # "NUMBER SECONDS", and the number comes back after that time.
  def open_client(timeout:)
    answers = 'while read -r number seconds; do sleep "$seconds"; echo "$number"; done'
    (@children ||= []) << keep(IO.popen(["sh", "-c", answers], "r+")).tap { |child| child.timeout = timeout }
    @children.last
  end

  def ask(child, number, seconds)
    child.puts("#{number} #{seconds}")
    Integer(child.gets)
  end

  # A child that sleeps would have to be waited for.
  def close_client(child)
    Process.kill(:KILL, child.pid)
    child.close
  end
end

contract "Open3" do
  extend TestSupport::Clients

  client "open3"

  # No child goes on before all have begun.
  def test_fifty_tasks_at_the_same_time
    here, begun = pipe
    wait, go_on = pipe
    reactor do
      go { here.read(50) && assert_others_run { others_have_run } && go_on.close }
      values, = all_at_once(50) do |number|
        Open3.capture2e("sh", "-c", "printf x >&3; read -r line <&4; echo #{number}; exit #{number}",
                        3 => begun, 4 => wait)
      end

      assert_equal([*0...50], values.map { |text, _| Integer(text) })
      assert_equal([*0...50], values.map { |_, status| status.exitstatus })
    end
  end

  # More than the pipes hold, in both directions and from both outputs.
  def test_much_through_all_three_pipes
    reactor do
      text = "x" * 1_000_000
      values, = all_at_once(5) { Open3.capture3("tee", "/dev/stderr", stdin_data: text) }

      sizes = values.map { |out, err, status| [out.size, err.size, status.success?] }

      assert_equal([[text.size, text.size, true]], sizes.uniq)
    end
  end

  def test_a_dialogue
    reactor do
      values, = all_at_once(10) do |number|
        Open3.popen3("sh", "-c", "read -r line; echo $line; echo done >&2; exit 3") do |input, output, error, child|
          input.puts(number)
          [Integer(output.gets), error.gets, child.value.exitstatus]
        end
      end

      assert_equal(Array.new(10) { |number| [number, "done\n", 3] }, values)
    end
  end

  def test_a_pipeline
    reactor do
      values, = all_at_once(10) { Open3.pipeline_r("seq 1000", "tail -n 1") { |last, _| last.read } }

      assert_equal(["1000\n"], values.uniq)
    end
  end
end

# Open3 waits for its child whatever ends the block, in plain Ruby as well: who wants it to end kills it.
contract "Open3Cancelled" do
  extend TestSupport::Clients

  client "open3"

  def test_cancel
    heddle_only("it is about tasks")
    Heddle.run(backend: backend) do
      child = nil
      task = Heddle.spawn do
        Open3.popen2("sleep", "20") do |_, output, waiter|
          child = waiter.pid
          output.read
        ensure
          Process.kill(:TERM, child)
        end
      end
      wait_until { child }
      task.cancel.wait(15)

      assert_predicate(task, :cancelled?)
      assert_raises(Errno::ESRCH) { Process.kill(0, child) }
    end
  end
end
