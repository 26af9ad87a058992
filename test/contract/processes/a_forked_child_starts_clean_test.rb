# frozen_string_literal: true

require "io/console"
require "pty"
require "stringio"

require_relative "../../test_helper"
require_relative "../../support/forks"

# The child of a fork starts clean, whatever it forked from; the parent is not disturbed.
contract "Fork" do
  include TestSupport::Forks

  heddle_only "schedulers"

  def test_from_a_task
    reactor do
      assert_equal("[nil, nil]", in_child { [Fiber.scheduler, Fiber.current_scheduler] })
    end
  end

  def test_the_child_may_block
    reactor do
      assert_equal(":slept", in_child { sleep(0.02) && :slept })
      assert_equal("\"x\"", in_child { IO.pipe.then { |r, w| w.write("x") && r.readpartial(1) } })
      assert_equal(":waited", in_child { Process.wait(spawn("true")) && :waited })
      assert_equal("1", in_child { Thread.new { 1 }.value })
    end
  end

  def test_the_child_may_start_its_own
    reactor do
      name = backend

      assert_equal("[1, :mine]", in_child do
        Heddle.run(backend: name) do
          reader, writer = IO.pipe
          job = Heddle.spawn { reader.readpartial(1).size }
          sleep(0.01)
          writer.write("x")
          [job.value, :mine]
        end
      end)
    end
  end

  def test_the_fibers_of_the_parent_do_not_run_in_the_child
    reactor do
      reader, writer = pipe
      job = go { 5.times { sleep(0.01) && writer.write(Process.pid.to_s) } }
      in_child { sleep(0.1) }
      job.value

      assert_equal(Process.pid.to_s * 5, reader.read_nonblock(1000))
    end
  end

  # Hazard: epoll_ctl in the child edits the parent's set.
  def test_the_parent_is_not_disturbed
    reactor do
      one, other = socket_pair
      timer = go { 10.times { sleep(0.01) } && :timer }
      reading = go { Array.new(5) { one.readpartial(10) } }
      settle
      5.times do |i|
        name = backend
        in_child do
          one.close
          Heddle.run(backend: name) { IO.pipe.first.wait_readable(0.01) }
        end
        other.write(i.to_s)
        settle
      end

      assert_equal(%w[0 1 2 3 4], reading.value)
      assert_equal(:timer, timer.value)
    end
  end

  def test_from_another_thread
    reactor do
      reader, writer = pipe
      reading = go { reader.readpartial(1) }
      settle
      said = Thread.new { in_child { [Fiber.scheduler, sleep(0.01)] } }.value

      assert_match(/\A\[nil, [01]\]\z/, said)
      writer.write("x")

      assert_equal("x", reading.value)
    end
  end

  def test_popen_with_a_dash
    reactor do
      text = IO.popen("-") do |io|
        next io.read if io

        sleep(0.01)
        $stdout.write("child")
        $stdout.flush
        exit!(0)
      end

      assert_equal("child", text)
    end
  end

  def test_exit_in_the_child_runs_neither_fibers_nor_ensure_of_the_parent
    out = assert_script(<<~RUBY)
      $stdout.sync = true
      parent = Process.pid
      over = Thread::Queue.new
      Heddle.run(backend: #{backend.inspect}) do
        Fiber.schedule do
          over.pop
        ensure
          puts "ensured in \#{Process.pid == parent ? "parent" : "child"}"
        end
        Process.wait(fork { puts "child" })
        Process.wait(fork { exit(0) })
        puts "main"
        over.close
      end
    RUBY

    assert_equal("child\nmain\nensured in parent\n", out)
  end

  def test_a_child_that_outlives_the_run
    out = assert_script(<<~RUBY)
      $stdout.sync = true
      reader, writer = IO.pipe
      pid = nil
      Heddle.run(backend: #{backend.inspect}) do
        pid = fork do
          writer.close
          reader.read
          puts Heddle.run(backend: #{backend.inspect}) { sleep(0.01); "child" }
        end
      end
      puts "parent"
      writer.close
      Process.wait(pid)
    RUBY

    assert_equal("parent\nchild\n", out)
  end

  def test_daemon
    path = File.join(tempdir, "out")
    outcome = run_ruby(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        Process.daemon(true, true)
        sleep(0.01)
        File.write(#{path.inspect}, Heddle.run(backend: #{backend.inspect}) { sleep(0.01); "daemon" })
      end
    RUBY

    assert_predicate(outcome, :success?, outcome.err)
    wait_until { File.exist?(path) && File.read(path) == "daemon" }
  end

  def test_a_daemon_has_no_scheduler
    path = File.join(tempdir, "out")
    outcome = run_ruby(<<~RUBY)
      Heddle.run(backend: #{backend.inspect}) do
        Process.daemon(true, true)
        begin
          Heddle.spawn { 1 }
        rescue Heddle::Error
          File.write(#{path.inspect}, Fiber.scheduler.inspect)
        end
      end
      File.write(#{path.inspect}, " after", mode: "a")
    RUBY

    assert_predicate(outcome, :success?, outcome.err)
    wait_until { File.exist?(path) && File.read(path) == "nil after" }
  end

  # The main block is left as in the parent, with its value or its exception.
  def test_the_child_goes_on_after_run
    out = assert_script(<<~RUBY)
      value = begin
        Heddle.run(backend: #{backend.inspect}) do
          Heddle.spawn { sleep(0.1) }
          sleep(0.001)
          (pid = fork) ? Process.wait(pid) : raise("in the first child")
          (pid = fork) ? Process.wait(pid) : exit(4)
          (pid = fork) ? Process.wait(pid) && "parent" : "child"
        end
      rescue RuntimeError, SystemExit => e
        e.class.name
      end
      GC.start
      again = Heddle.run(backend: #{backend.inspect}) { Heddle.spawn { sleep(0.001) && 1 }.value }
      inner = Fiber.new { Fiber.new { 2 }.resume }.resume
      puts "\#{value} \#{again} \#{inner} \#{Thread.new { 3 }.value}"
    RUBY

    assert_equal("RuntimeError 1 2 3\nSystemExit 1 2 3\nchild 1 2 3\nparent 1 2 3\n", out)
  end

  def test_a_preforking_server
    reactor do
      server = tcp_server
      port = server.addr[1]
      name = backend
      pids = Array.new(2) do
        fork do
          Heddle.run(backend: name) do
            2.times { server.accept.then { |socket| socket.write(Process.pid) && socket.close } }
          end
          exit!(0)
        end
      end
      answers = Array.new(4) { TCPSocket.open("127.0.0.1", port) { |socket| Integer(socket.read) } }
      pids.each { |pid| Process.wait(pid) }

      assert_equal(pids.sort.flat_map { |pid| [pid, pid] }, answers.sort)
    end
  end

  # Of every scheduler of the parent, on whatever thread it runs. Ruby's own timer thread has an epoll set, too.
  def test_the_child_keeps_no_descriptor_of_the_parent_s
    skip("libkqueue leaves descriptors of its own open") if libkqueue?
    out = assert_script(<<~RUBY)
      own = lambda do
        names = Dir.children("/proc/self/fd").map { |fd| File.readlink("/proc/self/fd/\#{fd}") rescue "" }
        names.grep(/anon_inode/).sort
      end
      Thread.new { sleep }
      in_child = -> { IO.popen("-") { |child| child ? child.read : print(own.call) } }
      plain = in_child.call
      ready = Thread::Queue.new
      threads = Array.new(3) do
        Thread.new { Heddle.run(backend: #{backend.inspect}) { sleep(0.01) && ready.push(1) && sleep } }
      end
      3.times { ready.pop }
      p in_child.call == plain
      Heddle.run(backend: #{backend.inspect}) do
        sleep(0.01)
        p in_child.call == plain
        timer = Heddle.spawn { sleep(0.01) && :timer }
        p [timer.value, threads.map(&:alive?)]
      end
      exit!(0) if $stdout.flush
    RUBY

    assert_equal("true\ntrue\n[:timer, [true, true, true]]\n", out)
  end

  # A worker that reads has a duplicate of the descriptor: the other end would not see that all the others are closed.
  def test_the_child_keeps_no_descriptor_of_a_worker
    reactor do
      master, slave = PTY.open.each { |io| keep(io) }
      slave.raw!(min: 2, time: 20)
      reading = go { slave.readpartial(2) }
      master.write("x")
      copies = lambda do
        paths = Dir.children("/proc/self/fd").map { |fd| "/proc/self/fd/#{fd}" }
        paths.count { |path| File.symlink?(path) && File.readlink(path) == slave.path }
      end
      wait_until { copies.call == 2 }

      assert_equal("1", in_child { copies.call })
      master.write("y")

      assert_equal("xy", reading.value)
    end
  end

  # What becomes of an operation on a worker in the child: the records of the parent are freed there, and only there.
  def test_garbage_of_the_parent_in_the_child
    reactor do
      lookups = Array.new(300) { |i| Fiber.scheduler.send(:lookup, "127.0.0.1", (i % 200).to_s, 0) }
      count = in_child do
        lookups.clear
        GC.start
        name = backend
        Heddle.run(backend: name) { Array.new(10) { |i| Heddle.spawn { i if Addrinfo.ip("127.0.0.1") } }.sum(&:value) }
      end

      assert_equal("45", count)
      assert_equal(300, lookups.each(&:release).size)
    end
  end

  # The parent raises it; the child says nothing of it.
  def test_what_has_failed_in_the_parent_is_not_told_in_the_child
    said = nil
    assert_raises(ZeroDivisionError) do
      Heddle.run(backend: backend) do
        Heddle.spawn { fork_amid_the_end { |text| said = text } }
        Heddle.spawn { raise ZeroDivisionError }
        sleep
      end
    end

    assert_equal('""', said)
  end

  def fork_amid_the_end
    sleep
  ensure
    before = $stderr
    $stderr = StringIO.new
    yield in_child { $stderr.string }
    $stderr = before
  end

  def test_no_descriptor_of_the_scheduler_reaches_a_program
    reactor do
      sleep(0.001)
      own = `ls -l /proc/self/fd`

      refute_match(/eventpoll|io_uring|eventfd/, own)
    end
  end

  def test_the_child_of_the_child
    reactor do
      name = backend
      outer = in_child { Heddle.run(backend: name) { in_child { Heddle.run(backend: name) { :inner } } } }

      assert_equal("\":inner\"", outer)
    end
  end
end
