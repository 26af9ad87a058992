# frozen_string_literal: true

require_relative "../../test_helper"

# A signal's handler forks without a block while the block of Heddle.run waits. The child returns from the handler into
# this wait, whose scheduler was its parent's. There it waits on, as it does without Heddle.
contract "HandlerForksWhereHomeWaits" do
  heddle_only "the fork of a scheduler"

  {
    "sleep" => "sleep(0.8)",
    "read" => "pair = IO.pipe; pair[0].timeout = 0.8; ended_by(IO::TimeoutError) { pair[0].read(1) }",
    "write" => "pair = IO.pipe; pair[1].timeout = 0.8; ended_by(IO::TimeoutError) { pair[1].write('x' * 300_000) }",
    "recv" => "pair = UNIXSocket.pair; pair[0].timeout = 0.8; ended_by(IO::TimeoutError) { pair[0].recv(1) }",
    "accept" => "server = TCPServer.new('127.0.0.1', 0); server.timeout = 0.8; " \
                "ended_by(IO::TimeoutError) { server.accept }",
    "wait_readable" => "pair = IO.pipe; pair[0].wait_readable(0.8).nil? && pair",
    "select" => "pair = IO.pipe; IO.select([pair[0]], nil, nil, 0.8).nil? && pair",
    "select_of_nothing" => "IO.select(nil, nil, nil, 0.8).nil? && computed < 0.3",
    "queue" => "Thread::Queue.new.pop(timeout: 0.8).nil?"
  }.each do |name, wait|
    define_method("test_#{name}") do
      needs_patch(:callers_fiber)

      assert_equal(["child true", "parent true"], assert_script(<<~RUBY).lines(chomp: true).sort)
        require "socket"
        def ended_by(error)
          yield && false
        rescue error
          true
        end
        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        def computed = $pid == 0 ? Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) : 0 # by the child

        $stdout.sync = true
        trap(:USR1) { $pid = fork || 0 }
        right = Heddle.run(backend: #{backend.inspect}) do
          Thread.new { sleep(0.01) until Thread.main.stop? && Process.kill(:USR1, $$) }
          began = now
          (#{wait}) && now >= began + 0.75
        end
        puts("\#{$pid == 0 ? "child" : "parent"} \#{right}")
        $pid == 0 ? exit!(true) : Process.wait($pid)
      RUBY
    end
  end

  # Each of the two finds at times that the other one was faster, and waits once more.
  def test_both_read_on
    needs_patch(:callers_fiber)
    counts = assert_script(<<~RUBY).lines.map { |line| Integer(line) }
      $stdout.sync = true
      reader, writer = IO.pipe
      trap(:USR1) { ($pid = fork || 0) == 0 && writer.close }
      read = 0
      Heddle.run(backend: #{backend.inspect}) do
        Thread.new do
          sleep(0.1) && Process.kill(:USR1, $$)
          sleep(0.1)
          300.times { writer.write("x") && sleep(0.001) }
          writer.close
        end
        loop { reader.readpartial(1) && read += 1 }
      rescue EOFError
        puts(read)
      end
      $pid == 0 ? exit!(true) : Process.wait($pid)
    RUBY

    assert_equal([2, 300], [counts.size, counts.sum])
  end

  # Each byte is read by one of the two.
  def test_a_read_that_ends
    needs_patch(:callers_fiber)

    assert_equal(%w[x x], assert_script(<<~RUBY).lines(chomp: true))
      $stdout.sync = true
      reader, writer = IO.pipe
      trap(:USR1) { ($pid = fork || 0) != 0 && Thread.new { sleep(0.1) && writer.write("xx") } }
      Heddle.run(backend: #{backend.inspect}) do
        Thread.new { sleep(0.1) && Process.kill(:USR1, $$) }
        puts(reader.readpartial(1))
      end
      $pid == 0 ? exit!(true) : Process.wait($pid)
    RUBY
  end
end
