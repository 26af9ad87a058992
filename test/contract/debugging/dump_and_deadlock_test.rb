# frozen_string_literal: true

require_relative "../../test_helper"
require "stringio"
require "timeout"

# Heddle.dump tells what every task does, and a deadlock is an exception.
contract "Dump" do
  heddle_only "they have Thread#backtrace"

  # The dump of one task that waits as the block does.
  def dump_of(**)
    Heddle.run(backend: backend) do
      task = Heddle.spawn(name: "one") { yield }
      sleep(0.01)
      text = dump
      task.cancel
      text[/^task "one":.*?(?=\n\n|\z)/m]
    end
  end

  def dump
    StringIO.new.tap { |io| Heddle.dump(io) }.string
  end

  def test_reading_from_a_socket
    reader, writer = socket_pair

    assert_match(/waits to read from UNIXSocket unnamed -> unnamed \(descriptor #{reader.fileno}\), since \d+\.\d+ s$/,
                 dump_of { reader.read(1) })
    writer.close
  end

  def test_the_peer_and_the_time_left
    server = tcp_server
    client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))
    client.timeout = 2000

    ports = [client.local_address.ip_port, server.addr[1]]

    assert_match(/TCPSocket 127\.0\.0\.1:#{ports[0]} -> 127\.0\.0\.1:#{ports[1]} .*, 19\d\d\.\d+ s left$/,
                 dump_of { client.read(1) })
  end

  def test_a_server_has_no_peer
    server = tcp_server

    assert_match(/TCPServer 127\.0\.0\.1:#{server.addr[1]} \(descriptor #{server.fileno}\), since/,
                 dump_of { server.accept })
  end

  def test_names_whose_encodings_differ
    text = Heddle.run(backend: backend) do
      thread = Thread.new { sleep }
      thread.name = "caf\u00e9 1".b
      tasks = [Heddle.spawn(name: "caf\u00e9 2".b) { thread.join }]
      tasks << Heddle.spawn(name: "caf\u00e9 3") { tasks.first.wait }
      tasks << Heddle.spawn { tasks.last.wait }
      sleep(0.01)
      dump
    ensure
      thread.kill.join
    end

    (1..3).each { |number| assert_match(/waits for .*caf\u00e9 #{number}/, text) }
  end

  def test_names_and_what_objects_say_of_themselves_are_in_one_line
    queue = Thread::Queue.new
    def queue.inspect = "a queue\nof\e[1m mine"
    lines = nil
    run do
      named = Thread.current.name
      Thread.current.name = "thread\none"
      tasks = [Heddle.spawn(name: "reads\n\e") { queue.pop }]
      lines = dump.lines(chomp: true)
      tasks.each(&:cancel)
    ensure
      Thread.current.name = named
    end

    assert_match(/thread\\none/, lines.first)
    assert_includes(lines.join("\n"), "\ntask \"reads\\n\\e\": waits for an item of a queue\\nof\\e[1m mine (")
    assert_empty(lines.grep(/\e/))
  end

  def test_what_cannot_write_is_refused
    assert_match(/\Aio: /, assert_raises(ArgumentError) { Heddle.dump(3) }.message)
  end

  def test_the_time_left_of_the_innermost_timeout
    reader, = pipe
    text = dump_of { Timeout.timeout(20_000) { Timeout.timeout(2000) { reader.read(1) } } }

    assert_match(/since \d+\.\d+ s; in Timeout.timeout, 19\d\d\.\d+ s left$/, text)
  end

  def test_files_that_others_hold
    path = File.join(tempdir, "file")
    [keep(File.open(path, "w")), keep(File.open(path, "w"))].first.flock(File::LOCK_EX)

    assert_match(/waits for the lock of #<File:#{path}> on a thread of the pool/,
                 dump_of { @kept.last.flock(File::LOCK_EX) })
    fifo = File.join(tempdir, "fifo")
    File.mkfifo(fifo)

    assert_match(/waits for the other end of the FIFO #{fifo} on a thread/, dump_of { File.open(fifo) })
  end

  def test_writing_and_selecting
    reader, writer = pipe
    text = dump_of { writer.write("x" * 1_000_000) }

    assert_match(/waits to write to IO pipe:\[\d+\] \(descriptor #{writer.fileno}\)/, text)
    assert_match(/in IO.select of 1: to read from IO/, dump_of { IO.select([pipe.first]) })
    reader.close
  end

  def test_queues_locks_threads_and_sleep
    lock = Thread::Mutex.new
    thread = Thread.new { sleep }

    assert_match(/waits for an item of #<Thread::Queue:\S+> \(1 waiting\)/, dump_of { Thread::Queue.new.pop })
    assert_match(/waits in sleep, since \S+ s, 4\d\d\.\d+ s left/, dump_of { sleep(500) })
    assert_match(/waits for the end of #<Thread:/, dump_of { thread.join })
    lock.lock

    assert_match(/waits for the lock of #<Thread::Mutex:/, dump_of { lock.lock })
  ensure
    thread.kill.join
  end

  def test_processes
    pid = spawn("sleep 500")

    assert_match(/waits for the end of process #{pid}/, dump_of { Process.wait(pid) })
    assert_match(/waits for the end of a child \(-1\)|ready to run/, dump_of { Process.wait }) # it looks now and then
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_the_backtrace_leads_to_the_line
    assert_match(/^      #{__FILE__}:#{__LINE__}:in /, dump_of { sleep })
  end

  def test_a_task_that_stands_in_a_fiber_it_resumed
    reader, = pipe
    text = dump_of { Enumerator.new { |yielder| yielder << reader.gets }.next }

    assert_match(/waits to read from IO/, text)
    assert_match(/-- resumed by:\n.*next/, text)
  end

  def test_all_kinds_of_fibers
    Heddle.run(backend: backend) do
      sleep(0.001)
      Heddle.spawn(name: "waiting") { sleep }
      Heddle.spawn { sleep }
      Fiber.schedule { sleep }
      inner = Heddle.spawn { Heddle.run { Heddle.spawn(name: "nested") { sleep } } }
      text = dump

      assert_match(/^6 tasks and fibers, 0 ready/, text)
      assert_match(/^task "main": running$/, text)
      assert_match(/^task "waiting": waits in sleep/, text)
      assert_match(/^task without a name: waits in sleep/, text)
      assert_match(/^task without a name: waits for the tasks of its scope/, text)
      assert_match(/^task "nested": waits in sleep/, text)
      assert_match(/^fiber #<Fiber:.*: waits in sleep/, text)
      inner.cancel
      raise Interrupt
    end
  rescue Interrupt
    nil
  end

  def test_from_another_thread
    Heddle.run(backend: backend) do
      waiting = Heddle.spawn(name: "waiting") { sleep }

      text = Thread.new { dump }.value
      waiting.cancel

      assert_match(/^task "main": waits for the end of #<Thread:/, text)
      assert_match(/^task "waiting": waits in sleep/, text)
    end
  end

  def test_of_a_thread_that_computes
    stop = false
    thread = Thread.new { Heddle.run(backend: backend) { Thread.pass until stop } }
    sleep(0.01) until thread.status == "run" && dump.include?("running")

    assert_match(/^task "main": running\n      #{__FILE__}/, dump)
  ensure
    stop = true
    thread.join
  end

  def test_without_a_scheduler
    out = assert_script("Heddle.dump($stdout)")

    assert_match(/\AHeddle \S+: no scheduler runs in this process \(pid \d+\)\n\z/, out)
  end

  # (The writer is kept: when the collector closes it, the task reads the end of the pipe, and is over.)
  def test_on_a_signal
    environment = { "HEDDLE_DUMP" => "USR1", "HEDDLE_BACKEND" => backend }
    outcome = run_ruby(<<~RUBY, env: environment)
      reader, _writer = IO.pipe
      Heddle.run do
        Heddle.spawn(name: "reads") { reader.gets }
        Process.kill(:USR1, $$)
        exit 3
      end
    RUBY

    assert_equal(3, outcome.status.exitstatus)
    assert_match(/^task "reads": waits to read from IO pipe:/, outcome.err)
  end

  # The wait of the fiber is over, but a handler came first, and waits.
  def test_a_handler_that_waits_in_a_fiber_that_is_ready
    fiber = Fiber.new { nil }
    waits = [{ kind: :sleep, state: :ready }, { kind: :block, state: :parked }, { kind: :sleep, state: :ready }]
    fibers = [fiber, fiber, Fiber.new { nil }]
    waits.zip(fibers) { |wait, one| wait.update(fiber: one, root: one, since: 1.0, as_holders: []) }
    counts = { armed: 0, timers: 0, workers: 0, queued: 0 }
    scheduler = Struct.new(:waits, :counts, :timeouts, :tasks, :backend, :thread)
    text = Heddle.const_get(:Dump).new(scheduler.new(waits, counts, {}, [], backend, Thread.current)).text

    assert_includes(text, "2 tasks and fibers, 1 ready")
    assert_match(/^fiber #{Regexp.escape(fiber.inspect)}: waits for an unblock, since 1.000 s$/, text)
    assert_match(/: ready to run$/, text)
  end

  def test_a_signal_that_does_not_exist
    %w[XYZ usr1 KILL SEGV].each do |name|
      outcome = run_ruby("puts Heddle.run { sleep(0.001) && :ran }", env: { "HEDDLE_DUMP" => name })

      assert_equal(["ran\n", 0, 1], [outcome.out, outcome.status.exitstatus, outcome.err.lines.size], name)
      assert_match(/\Aheddle: HEDDLE_DUMP=#{name} has no effect: /, outcome.err)
    end
  end

  # In a process of its own: here the watchdog's thread could wake anybody.
  def alone(code)
    assert_script(code, env: { "HEDDLE_BACKEND" => backend })
  end

  def test_two_tasks_that_wait_for_each_other
    needs_patch(:callers_fiber) # HEDDLE_SAFE also leaves out who holds a Mutex

    out = alone(<<~RUBY)
      begin
        Heddle.run do
          one = Mutex.new
          two = Mutex.new
          Heddle.spawn(name: "left") { one.synchronize { sleep(0.01) && two.synchronize { nil } } }
          Heddle.spawn(name: "right") do
            two.synchronize { sleep(0.01) && one.synchronize { nil } }
          ensure
            puts "cleaned"
          end
        end
      rescue Heddle::Error => e
        puts e.class, e.message
      end
    RUBY

    assert_match(/\Acleaned\nHeddle::Deadlock\n2 tasks wait for each other's locks in a circle/, out)
    assert_match(/^task "left": waits for the lock of .*, which task "right" holds, at -e:\d+, since/, out)
    assert_match(/^task "right": waits for the lock of .*, which task "left" holds, at -e:\d+, since/, out)
  end

  def test_a_deadlock_at_a_channel
    out = alone(<<~RUBY)
      begin
        Heddle.run { Heddle::Channel.new(name: "orders") << 1 }
      rescue Heddle::Deadlock => e
        puts e.message
      end
    RUBY

    assert_match(/^task "main": waits for a receiver of #<Heddle::Channel orders: 0 of 0, 1 waiting to push>/, out)
  end

  def test_a_deadlock_under_a_plain_scheduler
    out = alone(<<~RUBY)
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Heddle::Scheduler.new)
        queue = Queue.new
        Fiber.schedule { queue.pop }
      end
      begin
        thread.join
      rescue Heddle::Deadlock => e
        puts e.message
      end
    RUBY

    assert_match(/^fiber #<Fiber:.*: waits for an item of/, out)
  end

  # Threads of the pool that have nothing to do are no hope, and do not put the report off: it comes before they end.
  def test_a_deadlock_at_a_condition_variable
    out = alone(<<~RUBY)
      mutex = Mutex.new
      condition = ConditionVariable.new
      soon = 5.times.any? do # (a busy machine may take longer than an idle thread waits)
        Heddle.run do
          File.open(IO::NULL) { |file| file.flock(File::LOCK_EX) }
          Dir.children("/")
          mutex.synchronize { condition.wait(mutex) }
        end
      rescue Heddle::Deadlock => e
        puts e.message
        Thread.list.size > 1
      end
      puts soon
    RUBY

    assert_match(/^task "main": waits for a signal of #<Thread::ConditionVariable/, out)
    assert_match(/^true$/, out)
  end

  def test_the_end_of_the_last_other_thread_is_noticed
    out = alone(<<~RUBY)
      thread = Thread.new { sleep(0.3) }
      begin
        Heddle.run { Queue.new.pop }
      rescue Heddle::Deadlock
        puts thread.alive?
      end
    RUBY

    assert_equal("false\n", out)
  end

  # What could still wake the fibers: another thread, a timer, a signal's handler (as in Ruby, a sleep counts for it).
  def test_no_deadlock_while_something_may_wake_them
    reactor do
      queue = Thread::Queue.new
      thread = Thread.new { sleep(0.3) && queue.push(:thread) }

      assert_equal(:thread, queue.pop)
      thread.join
      Heddle.spawn { sleep(0.3) && queue.push(:timer) }

      assert_equal(:timer, queue.pop)
      reader, writer = pipe
      Heddle.spawn { queue.push(reader.gets) }
      process = spawn("sleep 0.3; echo child", out: writer)

      assert_equal("child\n", queue.pop)
      Process.wait(process)
    end
  end

  def test_no_deadlock_while_one_sleeps
    assert_raises(Timeout::Error) do
      Timeout.timeout(0.4) do
        Heddle.run(backend: backend) do
          Heddle.spawn { Thread::Queue.new.pop }
          sleep
        end
      end
    end
  end

  # In a process of its own: ObjectSpace does not go back to what it shows with a single Ractor.
  def test_after_another_ractor
    said = assert_script(<<~RUBY, options: ["-W:no-experimental"])
      Ractor.new { 1 }.then { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      Heddle.run(backend: #{backend.inspect}) do
        task = Heddle.spawn(name: "sleeper") { sleep }
        sleep(0.01)
        Thread.new { Heddle.dump($stdout) }.join
        task.cancel
      end
    RUBY

    assert_match(/^task "sleeper": waits in sleep/, said)
  end
end
