# frozen_string_literal: true

require_relative "../../test_helper"

# Fiber#raise and Fiber#kill into a fiber that waits: its ensure blocks run, the caller goes on.
contract "FiberRaise" do
  heddle_only "fibers"

  waits = {
    "sleep" => ->(_) { sleep },
    "a_long_sleep" => ->(_) { sleep(20) },
    "yield" => ->(_) { loop { sleep(0) } },
    "queue" => ->(_) { Thread::Queue.new.pop },
    "queue_with_timeout" => ->(_) { Thread::Queue.new.pop(timeout: 20) },
    "join" => ->(_) { Thread.new { sleep(2) }.join },
    "read" => ->(io) { io.readpartial(1) },
    "gets" => ->(io) { io.gets },
    "wait_readable" => ->(io) { io.wait_readable },
    "wait_with_timeout" => ->(io) { io.wait_readable(20) },
    "select" => ->(io) { IO.select([io]) },
    "recv" => ->(io) { io.recv(1) },
    "write" => ->(io) { io.write("x" * 5_000_000) },
    "accept" => ->(_) { TCPServer.open("127.0.0.1", 0, &:accept) },
    "process" => ->(_) { system("exec sleep 100") },
    "mutex" => ->(_) { Thread::Mutex.new.then { |mutex| mutex.synchronize { mutex.sleep } } }
  }

  # A job that waits, with [its events, the job]. The first event is the exception or :ensured.
  define_method(:waiting) do |name|
    one, = socket_pair
    events = []
    job = go do
      waits.fetch(name).call(one)
      events << :completed
    rescue ZeroDivisionError => e
      events << e.message
      :rescued
    ensure
      events << :ensured
    end
    settle

    refute_predicate(job, :finished?)
    [events, job]
  end

  waits.each_key do |name|
    define_method("test_raise_into_#{name}") do
      reactor do
        events, job = waiting(name)
        after = []
        job.fiber.raise(ZeroDivisionError, "sent")
        after << :raised

        assert_equal([:raised], after)
        assert_equal(:rescued, job.value)
        assert_equal(["sent", :ensured], events)
        kill_children
      end
    end

    define_method("test_kill_in_#{name}") do
      reactor do
        events, job = waiting(name)
        job.fiber.kill
        job.value

        assert_equal([:ensured], events)
        refute_predicate(job.fiber, :alive?)
        kill_children
      end
    end
  end

  # The fiber that waits has been resumed by the fiber that gets the exception.
  chains = {
    "a_fiber" => ->(io) { Fiber.new { io.gets }.resume },
    "an_enumerator" => ->(io) { Enumerator.new { |lines| lines << io.gets }.next },
    "a_fiber_in_a_fiber" => ->(io) { Fiber.new { Fiber.new { io.gets }.resume }.resume }
  }
  chains.each do |name, chain|
    %i[raise kill].each do |raise_into|
      define_method("test_#{raise_into}_while_#{name}_waits") do
        reactor do
          one, = socket_pair
          events = []
          job = Heddle.spawn do
            events << Fiber.current
            chain.call(one)
          rescue ZeroDivisionError
            events << :rescued
          ensure
            events << :ensured
          end
          settle
          events.shift.__send__(raise_into, *(ZeroDivisionError if raise_into == :raise))
          events << :caller_goes_on
          job.wait

          assert_equal([*(:rescued if raise_into == :raise), :ensured, :caller_goes_on], events)
        end
      end
    end
  end

  def test_kill_of_the_fiber_of_a_nested_run
    reactor do
      fiber = nil
      events = []
      outer = Heddle.spawn do
        fiber = Fiber.current
        Heddle.run do
          Heddle.spawn do
            sleep
          ensure
            events << :inner_ended
          end
          sleep
        end
      end
      settle
      fiber.kill
      outer.wait

      assert_equal([:inner_ended], events)
    end
  end

  def test_a_task_whose_fiber_was_killed_is_cancelled
    reactor do
      fiber = nil
      task = Heddle.spawn { (fiber = Fiber.current) && sleep }
      fiber.kill
      task.wait

      assert_predicate(task, :cancelled?)
      assert_raises(Heddle::Cancelled) { task.value }
    end
  end

  def test_an_exception_that_nobody_rescues
    reactor do
      fiber = nil
      out = capture_stderr do
        fiber = Fiber.schedule { sleep }
        fiber.raise(ZeroDivisionError, "unhandled")
        settle
      end

      refute_predicate(fiber, :alive?)
      assert_match(/unhandled/, out)
    end
  end

  def test_forms_of_raise
    reactor do
      seen = []
      job = go do
        3.times do
          sleep
        rescue StandardError => e
          seen << [e.class, e.message]
        end
      end
      job.fiber.raise("text")
      settle
      job.fiber.raise(ArgumentError)
      settle
      job.fiber.raise(IOError.new("object"))
      job.value

      assert_equal([[RuntimeError, "text"], [ArgumentError, "ArgumentError"], [IOError, "object"]], seen)
    end
  end

  def test_a_dead_fiber
    reactor do
      fiber = Fiber.schedule { nil }

      assert_raises(FiberError) { fiber.raise(ZeroDivisionError) }
      fiber.kill
    end
  end

  def test_into_itself
    reactor do
      assert_raises(ZeroDivisionError) { Fiber.current.raise(ZeroDivisionError) }
      events = []
      job = go do
        Fiber.current.kill
        events << :after
      ensure
        events << :ensured
      end
      job.value

      assert_equal([:ensured], events)
    end
  end

  def test_the_ensure_block_may_wait
    reactor do
      events = []
      job = go do
        sleep
      ensure
        sleep(0.02)
        events << :ensured
      end
      settle
      job.fiber.raise(ZeroDivisionError)
      events << :caller

      assert_instance_of(ZeroDivisionError, job.failure)
      assert_equal(%i[caller ensured], events)
    end
  end

  # The wake was on its way when the exception came.
  def test_raise_into_a_fiber_that_is_ready
    reactor do
      queue = Thread::Queue.new
      reader, writer = pipe
      one = go { [queue.pop, queue.pop(timeout: 0.05)] }
      two = go { reader.readpartial(1) && reader.wait_readable(0.05) }
      settle
      queue.push(1)
      one.fiber.raise(ZeroDivisionError)
      writer.write("x")
      two.fiber.raise(ZeroDivisionError)

      assert_instance_of(ZeroDivisionError, one.failure)
      assert_instance_of(ZeroDivisionError, two.failure)
    end
  end

  def test_the_io_is_usable_afterwards
    reactor do
      one, other = socket_pair
      20.times do
        job = go { one.readpartial(5) }
        settle
        job.fiber.kill
        job.value
      end
      other.write("hello")

      assert_equal("hello", one.readpartial(5))
      assert_nil(one.wait_readable(0))
    end
  end

  # No byte is taken by a reader that is gone.
  def test_no_byte_is_lost
    reactor do
      one, other = socket_pair
      received = +""
      50.times do |i|
        job = go { received << one.readpartial(1) }
        settle if i.even?
        other.write((97 + (i % 26)).chr)
        job.fiber.kill unless job.finished?
        job.value
      end
      received << one.read_nonblock(100, exception: false).then { |rest| rest.is_a?(String) ? rest : "" }

      assert_equal(Array.new(50) { |i| (97 + (i % 26)).chr }.join, received)
    end
  end

  def test_no_connection_is_lost
    reactor do
      server = tcp_server
      accepted = 0
      20.times do |i|
        job = go { server.accept.tap { accepted += 1 }.close }
        settle if i.even?
        keep(TCPSocket.new("127.0.0.1", server.addr[1]))
        job.fiber.kill unless job.finished?
        job.value
      end
      while server.wait_readable(accepted < 20 ? 5 : 0)
        server.accept.close
        accepted += 1
      end

      assert_equal(20, accepted)
    end
  end

  def test_from_another_fiber_that_then_ends
    reactor do
      victim = go { sleep }
      killer = go { victim.fiber.raise(ZeroDivisionError) && :done }

      assert_instance_of(ZeroDivisionError, victim.failure)
      killer.value
    end
  end

  def test_two_fibers_that_end_each_other
    reactor do
      two = nil
      one = go { sleep(0.01) && two.fiber.kill }
      two = go { sleep(0.01) && one.fiber.kill }
      [one, two].each(&:value)
    end
  end

  private

  def capture_stderr
    reader, writer = IO.pipe
    saved = $stderr.dup
    $stderr.reopen(writer)
    yield
    $stderr.reopen(saved)
    writer.close
    reader.read
  ensure
    $stderr.reopen(saved)
    [reader, writer, saved].each(&:close)
  end
end
