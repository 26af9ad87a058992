# frozen_string_literal: true

require_relative "../test_helper"
require "heddle/testing"
require "monitor"
require "socket"
require "stringio"

# The virtual clock of Heddle::Testing.run.
contract "TestingClock" do
  heddle_only("plain threads have no virtual clock")

  # No test really waits for it: its time limit is shorter.
  def hour = 3600

  def virtually(**, &) = Heddle::Testing.run(backend:, **, &)

  # @return [Float] the time that the block takes by the virtual clock
  def virtual_time
    virtually do |clock|
      yield
      clock.now
    end
  end

  def test_time_jumps_when_all_wait
    assert_equal([hour, hour.to_f], virtually { |clock| [sleep(hour), clock.now] })
  end

  def test_time_stands_still_while_a_task_runs
    times = virtually do |clock|
      Heddle.spawn { sleep hour }
      Array.new(100) { sleep(0) && clock.now }
    end

    assert_equal([0.0], times.uniq)
  end

  def test_deadlines_come_in_their_order
    order = virtually do |clock|
      times = []
      [3, 1, 2].each { |hours| Heddle.spawn { sleep(hours * hour) && (times << [hours, clock.now]) } }
      sleep(4 * hour)
      times
    end

    assert_equal([[1, hour.to_f], [2, 2.0 * hour], [3, 3.0 * hour]], order)
  end

  # Less than a nanosecond is left at the end of some intervals.
  def test_a_part_of_a_nanosecond_passes
    assert_operator(virtual_time { 20.times { sleep(1e-10) } }, :>, 0)

    calls = 0
    virtually { Heddle.every(0.1) { calls += 1 } && sleep(1.05) }

    assert_equal(10, calls)
    limiter = Heddle::RateLimiter.new(1, per: 0.3)

    assert_in_delta(3.0, virtual_time { sleep(1 / 3.0) && 10.times { limiter.acquire } }, 0.4)
  end

  def test_time_limits
    assert_equal(hour, virtual_time { assert_raises(Timeout::Error) { Timeout.timeout(hour) { sleep } } })
    assert_equal(hour, virtual_time { assert_raises(Heddle::TimeoutError) { Heddle.timeout(hour) { sleep } } })
    late = -> { Heddle.scope(deadline: hour) { |scope| scope.spawn { sleep } } }

    assert_equal(hour, virtual_time { assert_raises(Heddle::TimeoutError, &late) })
    assert_equal(hour, virtual_time { Heddle.spawn(background: true) { sleep }.wait(hour) })
  end

  # (Another thread looks after deadlines of blocks that compute. It does not see this clock.)
  def test_a_block_that_computes_before_its_deadline
    computing = proc do
      5.times do
        sleep(1)
        past = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.02
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < past
      end
      :done
    end
    limits = [Heddle.method(:move_on_after), Heddle.method(:timeout), Timeout.method(:timeout),
              ->(seconds, &block) { Heddle.scope(deadline: seconds, &block) }]

    limits.each { |limit| assert_equal(:done, virtually { limit.call(6, &computing) }, limit) }
  end

  def test_what_waits_for_a_time_in_other_ways
    channel = Heddle::Channel.new

    {
      3 => -> { assert_nil(Heddle.move_on_after(3) { sleep }) },
      4 => -> { Heddle.move_on_after(hour) { |scope| (scope.deadline = 4) && sleep } },
      5 => -> { assert_nil(channel.pop(timeout: 5)) },
      6 => -> { assert_nil(Heddle.select(channel, timeout: 6)) },
      7 => -> { Heddle.retry(attempts: 2, wait: 7) { |attempt| raise IOError if attempt == 1 } },
      8 => -> { Heddle.move_on_after(8) { assert_in_delta(8.0, Heddle.remaining) && sleep } }
    }.each { |seconds, wait| assert_equal(seconds, virtual_time(&wait)) }
  end

  def test_every
    turns = virtually do
      turns = 0
      Heddle.every(60) { turns += 1 }
      sleep(60.5 * 30)
      turns
    end

    assert_equal(30, turns)
  end

  def test_time_limits_of_queues
    assert_equal(hour, virtual_time { assert_nil(Thread::Queue.new.pop(timeout: hour)) })
    assert_equal(hour, virtual_time { assert_nil(Thread::Queue.new.shift(timeout: hour)) })
    full = Thread::SizedQueue.new(1) << :first

    assert_equal(hour, virtual_time { assert_nil(full.push(:second, timeout: hour)) })
    assert_equal(1, full.size)
    assert_equal(0, virtual_time { assert_equal(:first, full.pop(timeout: hour)) })
  end

  def test_an_item_that_comes_in_time
    taken = virtually do |clock|
      queue = Thread::Queue.new
      Heddle.spawn { sleep(hour) && (queue << :item) }
      [queue.pop(timeout: hour + 1), clock.now]
    end

    assert_equal([:item, hour.to_f], taken)
  end

  def test_time_limits_of_locks
    lock = Thread::Mutex.new

    assert_equal(hour, virtual_time { lock.synchronize { Thread::ConditionVariable.new.wait(lock, hour) } })
    assert_equal(hour, virtual_time { lock.synchronize { lock.sleep(hour) } })
    monitor = Monitor.new

    assert_equal(hour, virtual_time { monitor.synchronize { monitor.new_cond.wait(hour) } })
  end

  def test_time_limits_of_ios
    IO.pipe do |reader, writer|
      assert_equal(hour, virtual_time { assert_nil(IO.select([reader], nil, nil, hour)) })
      assert_equal(hour, virtual_time { assert_nil(reader.wait_readable(hour)) })
      reader.timeout = hour

      assert_equal(hour, virtual_time { assert_raises(IO::TimeoutError) { reader.readpartial(1) } })
      writer.close
    end
  end

  # Server and client have nothing in common but the kernel.
  def test_a_real_server
    server = keep(TCPServer.new("127.0.0.1", 0))
    answers = virtually do |clock|
      Heddle.spawn(background: true) { serve(server) }
      client = keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      Array.new(3) { ask(client).tap { sleep hour } } << clock.now
    end

    assert_equal(["A\n", "A\n", "A\n", 6.0 * hour], answers)
  end

  # The answer of another process comes in the machine's time, and no time limit overtakes it.
  def test_a_child_process_is_waited_for
    command = [*ruby_command, "--disable=gems", "-e", "$stdout.sync = true; sleep 0.3; puts 1; sleep 0.3; puts 2"]
    lines = virtually do
      IO.popen(command) { |child| Timeout.timeout(hour) { [child.gets, child.gets, child.gets] } }
    end

    assert_equal(["1\n", "2\n", nil], lines)
    assert(virtually { Timeout.timeout(hour) { system("sleep 0.3") } })
  end

  # (The child has accepted the connection before the clock may jump: until then this process could accept it.)
  def test_a_peer_in_another_process_is_waited_for
    own, other = UNIXSocket.pair
    server = keep(TCPServer.new("127.0.0.1", 0))
    child = fork do
      peer = server.accept
      other.write("accepted")
      other.read(1) && sleep(0.2) && peer.write("x")
      exit!(true)
    end
    answer = virtually do
      client = keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      own.readpartial(8)
      own.write("x")
      Timeout.timeout(hour) { client.readpartial(1) }
    end

    assert_equal("x", answer)
  ensure
    [own, other].compact.each(&:close)
    Process.wait(child) if child
  end

  # A connection that waits to be accepted in this process is a matter of its own tasks.
  def test_a_server_that_accepts_late
    server = keep(TCPServer.new("127.0.0.1", 0))
    answer = virtually do
      Heddle.spawn { sleep(hour) && keep(server.accept).write("x") }
      client = keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      client.readpartial(1)
    end

    assert_equal("x", answer)
  end

  def test_a_thread_and_an_offloaded_block_are_waited_for
    assert_equal(1, virtually { Timeout.timeout(hour) { Thread.new { sleep(0.2) && 1 }.value } })
    assert_equal(1, virtually { Timeout.timeout(hour) { Heddle.offload { sleep(0.2) && 1 } } })
  end

  # Their time limits come, too, in the machine's time.
  def test_a_time_limit_of_what_is_waited_for
    ended = virtually do
      child = Process.spawn("sleep 300")
      assert_raises(Timeout::Error) { Timeout.timeout(0.05) { Process.wait(child) } }
      Process.kill(:KILL, child)
      Process.wait2(child).last
    end

    assert_predicate(ended, :signaled?)
  end

  def test_a_thread_that_computes_is_given_the_threshold
    queue = Thread::Queue.new
    item = virtually(threshold: 20) do |clock|
      thread = Thread.new { sleep(0.1) && (queue << :item) }
      [queue.pop(timeout: hour), clock.now].tap { thread.join }
    end

    assert_equal([:item, 0.0], item)
  end

  def test_other_threads_have_the_clock_of_the_machine
    took = virtually do
      Thread.new do
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        Heddle.run(backend:) { sleep 0.05 }
        Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
      end.value
    end

    assert_operator(took, :>=, 0.05)
  end

  def test_the_next_run_has_the_clock_of_the_machine
    silently { assert_raises(IOError) { virtually { raise IOError } } }
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Heddle.run(backend:) { sleep 0.05 }

    assert_operator(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :>=, 0.05)
    assert_nil(Heddle::Testing.clock)
  end

  def test_wait_until_idle
    seen = virtually do |clock|
      steps = []
      queue = Thread::Queue.new
      Heddle.spawn { 5.times { sleep 0 } && (steps << :ready) && queue.pop && (steps << :taken) && sleep(hour) }
      clock.wait_until_idle
      before = steps.dup
      queue << 1
      clock.wait_until_idle
      [before, steps.dup, clock.now]
    end

    assert_equal([[:ready], %i[ready taken], 0.0], seen)
  end

  def test_wait_until_idle_of_several_and_of_a_cancelled_one
    seen = virtually do |clock|
      waiting = Array.new(3) { Heddle.spawn { clock.wait_until_idle && clock.now } }
      waiting.first.cancel
      waiting.map { |task| task.wait.status } << clock.now
    end

    assert_equal([:cancelled, :finished, :finished, 0.0], seen)
  end

  def test_advance
    seen = virtually do |clock|
      turns = []
      Heddle.every(10) { turns << clock.now }
      clock.advance(30)
      turns
    end

    assert_equal([10.0, 20.0, 30.0], seen)
  end

  def test_the_clock_does_not_pass_over_a_circle_of_locks
    locks = [Thread::Mutex.new, Thread::Mutex.new]
    circle = lambda do
      Heddle.map([locks, locks.reverse]) { |one, two| one.synchronize { sleep(1) && two.synchronize { nil } } }
    end

    silently { assert_raises(Heddle::Deadlock) { virtually { Heddle.timeout(hour, &circle) } } }
  end

  # Such a task would keep the others from running, and a look at the clock shows nothing.
  def test_a_stream_that_always_has_data
    read = virtually do
      task = Heddle.spawn { File.open("/dev/zero") { |file| loop { file.readpartial(10) } } }
      3.times { sleep 0 }
      task.cancel.wait.status
    end

    assert_equal(:cancelled, read)
  end

  def test_a_dump_goes_by_the_clock
    text = virtually do
      Heddle.spawn(name: "sleeper", background: true) { sleep hour }
      sleep 600
      Thread.new { StringIO.new.tap { |out| Heddle.dump(out) }.string }.value
    end

    assert_match(/sleeper": waits in sleep, since 600\.\d+ s, 3000\.\d+ s left/, text)
  end

  def test_wrong_arguments
    { seed: [-1, 2**32, "1"], threshold: [-1, nil, "1"] }.each do |name, values|
      values.each do |value|
        error = assert_raises(ArgumentError) { virtually(name => value) { nil } }

        assert_match(/\A#{name}: must /, error.message)
      end
    end
    assert_raises(ArgumentError) { Heddle::Testing.run }
    virtually { |clock| [-1, nil, "1"].each { |wrong| assert_raises(ArgumentError) { clock.advance(wrong) } } }
  end

  def test_only_one_clock
    error = assert_raises(Heddle::Error) { run { virtually { nil } } }

    assert_equal("Heddle::Testing.run must be the outermost run of its thread", error.message)
    clock = virtually { |one| one }

    assert_match(/\A#<Heddle::Testing::Clock 0\.0 s, seed \d+>\z/, clock.inspect)

    assert_raises(Heddle::Error) { clock.wait_until_idle }
    assert_raises(Heddle::Error) { run { clock.advance(1) } }
  end

  private

  # Without the seed of a run that fails.
  def silently(&) = capture_io(&)

  def serve(server)
    loop do
      peer = keep(server.accept)
      Heddle.spawn(background: true) do
        while (line = peer.gets)
          sleep hour
          peer.puts(line.upcase)
        end
      end
    end
  end

  def ask(client)
    client.puts("a")
    client.gets
  end
end
