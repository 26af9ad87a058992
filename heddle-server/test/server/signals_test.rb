# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/server/process/signals"

# The signals of the process that keeps the workers alive.
class ServerSignalsTest < HeddleTest
  def setup
    super
    @before = %w[USR1 USR2].to_h { |name| [name, trap(name, "DEFAULT")] }
    @signals = Heddle::Server::Signals.new({ "USR1" => :one, "USR2" => :two })
  end

  def teardown
    @before.each { |name, handler| trap(name, handler) }
    @signals.leave
    super
  end

  def test_each_is_an_event
    %i[USR2 USR1].each { |name| Process.kill(name, Process.pid) }

    assert_equal(%i[one two], Array.new(2) { @signals.pop(timeout: 10) }.sort)
    assert_nil(@signals.pop(timeout: 0.01))
  end

  def test_what_comes_while_something_else_is_waited_for
    reader, writer = IO.pipe
    Process.kill(:USR2, Process.pid)

    refute(@signals.wait_for(reader, 0.01, but: %i[one]))
    refute(@signals.wait_for(reader, 60, but: %i[two]))
    assert(@signals.come?(%i[two]))
    writer.close

    assert(@signals.wait_for(reader, 60, but: %i[one]))
    assert_equal([:two, nil], [@signals.pop(timeout: 10), @signals.pop(timeout: 0.01)])
  ensure
    [reader, writer].each(&:close)
  end

  # While another program takes the place of this one, Ruby would note a signal, and forget it in the exec.
  def test_what_ends_the_program_is_not_lost_in_an_exec
    30.times do |number|
      pid, ready = about_to_exec
      ready.read(1)
      sleep(number * 0.00005)
      Process.kill(:TERM, pid)
      wait_until("try #{number}: it has ended") { Process.wait(pid, Process::WNOHANG) }

      assert_equal(Signal.list["TERM"], $?.termsig)
      pid = nil
    ensure
      Process.kill(:KILL, pid) && Process.wait(pid) if pid
    end
  end

  # @return [Array(Integer, IO)] a process, and what can be read when its exec comes next
  def about_to_exec
    reader, writer = IO.pipe
    keep(reader)
    pid = fork do
      signals = Heddle::Server::Signals.new({ "TERM" => :stop, "HUP" => :restart })
      writer.write("x")
      exec("sleep", "600") if signals.give_up(["HUP"], unless_come: [:stop])
      trap("TERM", "SYSTEM_DEFAULT")
      Process.kill(:TERM, Process.pid)
    end
    writer.close
    [pid, reader]
  end

  # A new worker may get a signal before it has handlers of its own.
  def test_what_comes_for_a_child_is_not_for_its_parent
    pid = fork do
      Process.kill(:USR1, Process.pid)
      exit!(0)
    end
    Process.wait(pid)

    assert_predicate($?, :success?)
    assert_nil(@signals.pop(timeout: 0.1))
  end
end
