# frozen_string_literal: true

require_relative "../test_helper"

# Closing an IO wakes the fibers that wait on it, once, with IOError, and no others.
contract "IOClose" do
  heddle_only "its threads start too late for this"

  waits = {
    "readpartial" => ->(io) { io.readpartial(1) },
    "sysread" => ->(io) { io.sysread(1) },
    "read" => ->(io) { io.read(1) },
    "gets" => ->(io) { io.gets },
    "wait_readable" => ->(io) { io.wait_readable },
    "wait_with_timeout" => ->(io) { io.wait_readable(20) },
    "select" => ->(io) { IO.select([io]) }
  }
  sockets = { "recv" => ->(io) { io.recv(1) }, "recvfrom" => ->(io) { io.recvfrom(1) },
              "recvmsg" => ->(io) { io.recvmsg(1) } }

  def assert_closed(job)
    assert_instance_of(IOError, job.failure)
    assert_match(/stream closed|closed stream/, job.failure.message)
  end

  TestSupport::Streams::PLAIN.each do |kind|
    (kind == "pipe" ? waits : waits.merge(sockets)).each do |name, wait|
      define_method("test_#{name}_on_#{kind}") do
        reactor do
          reader, = stream_pair(kind)
          job = go { wait.call(reader) }
          settle
          reader.close

          assert_closed(job)
          assert_predicate(reader, :closed?)
        end
      end

      define_method("test_#{name}_on_#{kind}_from_a_thread") do
        reactor do
          reader, = stream_pair(kind)
          job = go { wait.call(reader) }
          settle
          Thread.new { reader.close }.join

          assert_closed(job)
        end
      end
    end
  end

  on_streams "a parked writer", TestSupport::Streams::PLAIN do |_reader, writer|
    job = go { writer.write("x" * 5_000_000) }
    settle
    writer.close

    assert_closed(job)
  end

  on_streams "a parked gets", ["ssl"] do |reader, _writer|
    job = go { reader.gets }
    settle
    reader.to_io.close

    refute_nil(job.failure)
  end

  def test_a_frozen_io
    reactor do
      pipe.each { |io| io.freeze.close }.each { |io| assert_predicate(io, :closed?) }
    end
  end

  def test_accept
    reactor do
      server = tcp_server
      jobs = [go { server.accept }, go { server.wait_readable }]
      settle
      server.close

      jobs.each { |job| assert_closed(job) }
    end
  end

  def test_two_waiters_are_woken_and_the_closer_goes_on
    reactor do
      reader, writer = pipe
      jobs = Array.new(2) { go { reader.readpartial(1) } }
      settle
      reader.close
      queue = Thread::Queue.new
      popped = go { queue.pop }
      settle

      refute_predicate(popped, :finished?)
      queue.push(1)

      assert_equal(1, popped.value)
      jobs.each { |job| assert_closed(job) }
      assert_raises(Errno::EPIPE) { writer.write("x") }
    end
  end

  def test_the_peer_sees_the_end_at_once
    reactor do
      one, other = socket_pair
      job = go { one.readpartial(1) }
      settle
      one.close

      assert_equal("", other.read)
      assert_closed(job)
    end
  end

  # Hazard: the next IO with the same number gets the old waiter's wake, or the old waiter its bytes.
  def test_the_number_is_used_again
    reactor do
      20.times do
        reader, writer = pipe
        number = reader.fileno
        job = go { reader.readpartial(10) }
        settle
        reader.close
        fresh_reader, fresh_writer = pipe
        fresh_writer.write("fresh")

        assert_equal(number, fresh_reader.fileno)
        assert_closed(job)
        assert_equal("fresh", fresh_reader.readpartial(10))
        close_all(writer, fresh_reader, fresh_writer)
      end
    end
  end

  def test_only_the_waiters_of_the_closed_object
    reactor do
      reader, writer = pipe
      twin = keep(reader.dup)
      waiting = go { twin.readpartial(1) }
      closed = go { reader.readpartial(1) }
      settle
      reader.close

      assert_closed(closed)
      settle

      refute_predicate(waiting, :finished?)
      writer.write("x")

      assert_equal("x", waiting.value)
    end
  end

  # IO.for_fd makes a twin of the same descriptor: its waiter is not one of the closed object's, but has to hear of it.
  twin_waits = waits.slice("readpartial", "sysread", "read", "gets", "wait_readable", "select")
  TestSupport::Streams::PLAIN.each do |kind|
    (kind == "pipe" ? twin_waits : twin_waits.merge(sockets)).each do |name, wait|
      define_method("test_the_twin_of_a_closed_#{kind}_in_#{name}") do
        reactor do
          reader, = stream_pair(kind)
          twin = reader.class.for_fd(reader.fileno, **(kind == "pipe" ? { autoclose: false } : {}))
          twin.autoclose = false
          job = go { wait.call(twin) }
          settle
          reader.close

          assert_instance_of(Errno::EBADF, job.failure)
        end
      end
    end
  end

  def test_the_twin_does_not_read_what_has_the_number_next
    reactor do
      reader, = pipe
      twin = IO.for_fd(reader.fileno, autoclose: false)
      jobs = [go { twin.readpartial(10) }, go { IO.select([twin]) }]
      settle
      reader.close
      fresh_reader, fresh_writer = pipe
      fresh_writer.write("fresh")

      assert_equal([twin.fileno, "fresh"], [fresh_reader.fileno, fresh_reader.readpartial(10)])
      assert_equal([Errno::EBADF] * 2, jobs.map { |job| job.failure.class })
    end
  end

  def test_the_twin_that_waits_to_write
    reactor do
      _, writer = pipe
      fill(writer)
      twin = IO.for_fd(writer.fileno, autoclose: false)
      jobs = [go { twin.wait_writable }, go { IO.select(nil, [twin]) }, go { twin.syswrite("x") }]
      settle
      writer.close

      assert_equal([Errno::EBADF] * 3, jobs.map { |job| job.failure.class })
    end
  end

  # Hazard: the descriptor stays open, and its waiters were woken with EBADF.
  TestSupport::Streams::PLAIN.each do |kind|
    twin_waits.each do |name, wait|
      define_method("test_a_twin_without_autoclose_wakes_only_its_own_#{kind}_in_#{name}") do
        reactor do
          reader, writer = stream_pair(kind)
          twin = reader.class.for_fd(reader.fileno)
          twin.autoclose = false
          others = go { wait.call(twin) }
          own = go { wait.call(reader) }
          settle
          twin.close
          settle

          assert_closed(others)
          refute_predicate(own, :finished?)
          writer.puts("line")

          assert_includes(["l", "line\n", reader, [[reader], [], []]], own.value)
        end
      end
    end
  end

  def test_a_writer_whose_twin_without_autoclose_is_closed
    reactor do
      reader, writer = pipe
      filled = fill(writer)
      twin = IO.for_fd(writer.fileno, "w", autoclose: false)
      job = go { writer.write("last") }
      settle
      twin.close
      settle

      refute_predicate(job, :finished?)
      drain(reader, filled)

      assert_equal([4, "last"], [job.value, reader.readpartial(10)])
    end
  end

  # Ruby leaves the descriptors 0 to 2 open, whoever closes them.
  def test_standard_input
    out = assert_script(<<~RUBY)
      reader, writer = IO.pipe
      STDIN.reopen(reader)
      twin = IO.for_fd(0)
      Heddle.run(backend: #{backend.inspect}) do
        task = Heddle.spawn { twin.gets }
        sleep(0)
        STDIN.close
        writer.puts("line")
        print task.value
      end
    RUBY

    assert_equal("line\n", out)
  end

  # A close that fails leaves the descriptor open.
  def test_the_twin_of_an_io_whose_close_is_struck
    reactor do
      one, other = socket_pair
      filled = fill(one)
      one.sync = false
      one.write("last")
      twin = UNIXSocket.for_fd(one.fileno)
      twin.autoclose = false
      reading = go { twin.gets }
      closing = go { one.close }
      settle
      Fiber.scheduler.interrupt(closing.fiber, ZeroDivisionError.new)

      assert_instance_of(ZeroDivisionError, closing.failure)
      refute_predicate(one, :closed?)
      refute_predicate(reading, :finished?)
      drain(other, filled)
      other.puts("line")

      assert_equal("line\n", reading.value)
    end
  end

  def test_the_twin_of_what_is_reopened
    reactor do
      reader, = pipe
      fresh, fresh_writer = pipe
      twin = IO.for_fd(reader.fileno, autoclose: false)
      job = go { twin.gets }
      settle
      reader.reopen(fresh)
      fresh_writer.puts("line")

      assert_equal("line\n", job.value)
    end
  end

  def test_a_collected_twin_disturbs_nobody
    reactor do
      reader, writer = pipe
      job = go { reader.readpartial(1) }
      settle
      50.times { IO.for_fd(reader.fileno, autoclose: false) }
      GC.start
      settle

      refute_predicate(job, :finished?)
      writer.write("x")

      assert_equal("x", job.value)
    end
  end

  def test_copy_stream_whose_source_is_closed
    reactor do
      source, = pipe
      _, destination = pipe
      job = go { IO.copy_stream(source, destination) }
      sleep(0.02) # Ruby 3.4+ has a worker do it
      source.close

      assert_closed(job)
      refute_predicate(destination, :closed?)
    end
  end

  def test_copy_stream_whose_destination_is_closed
    reactor do
      source, supply = pipe
      _, destination = pipe
      fill(destination)
      supply.write("x")
      job = go { IO.copy_stream(source, destination) }
      sleep(0.02)
      Thread.new { destination.close }.join

      assert_closed(job)
      refute_predicate(source, :closed?)
    end
  end

  def test_a_waiter_that_begins_again_while_the_others_unwind
    reactor do
      server = tcp_server
      job = go do
        server.accept
      rescue ZeroDivisionError
        server.accept
      end
      settle
      Fiber.scheduler.interrupt(job.fiber, ZeroDivisionError.new)
      server.close

      assert_closed(job)
    end
  end

  def test_close_write_does_not_touch_the_reader
    reactor do
      one, other = socket_pair
      reading = go { one.read }
      settle
      one.write("x")
      one.close_write

      assert_equal("x", other.read)
      other.write("answer")
      other.close

      assert_equal("answer", reading.value)
    end
  end

  def test_popen_whose_input_is_closed_while_its_output_is_read
    reactor do
      IO.popen(["cat"], "r+") do |cat|
        reading = go { cat.read }
        settle
        cat.write("line")
        cat.close_write

        assert_equal("line", reading.value)
      end
    end
  end

  # Ruby calls the hooks with the closed one of the two IO objects that IO.popen makes.
  def test_popen_is_written_to_after_close_read
    reactor do
      reader, writer = pipe
      IO.popen(["sh", "-c", "cat >&3"], "r+", 3 => writer) do |cat|
        cat.close_read
        cat.write("line")
      end
      writer.close

      assert_equal("line", reader.read)
    end
  end

  def test_reopen
    reactor do
      reader, = pipe
      fresh, fresh_writer = pipe
      job = go { reader.readpartial(10) }
      settle
      reader.reopen(fresh)
      fresh_writer.write("fresh")

      assert_closed(job)
      assert_equal("fresh", reader.readpartial(10))
    end
  end

  # IO.popen("r+") hides a second IO for writing.
  def test_popen
    reactor do
      io = keep(IO.popen("cat", "r+"))
      reading = go { io.gets }
      writing = go { io.write("x" * 5_000_000) }
      settle
      closing = go { io.close }

      [reading, writing].each { |job| refute_nil(job.failure) }
      closing.value
    end
  end

  def test_select_on_many_of_which_one_is_closed
    reactor do
      pipes = Array.new(5) { pipe }
      job = go { IO.select(pipes.map(&:first)) }
      settle
      pipes[2].first.close

      assert_closed(job)
      pipes[0].last.write("x")

      assert_equal("x", pipes[0].first.readpartial(1))
    end
  end

  # A close from outside of every fiber: from the root under set_scheduler.
  def test_close_from_the_root_fiber
    name = backend
    reader, = pipe
    error = nil
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new(backend: name))
      Fiber.schedule do
        reader.readpartial(1)
      rescue IOError => e
        error = e
      end
      reader.close
    end.join

    assert_instance_of(IOError, error)
  end

  def test_close_from_the_fiber_of_another_scheduler
    name = backend
    reactor do
      reader, = pipe
      job = go { reader.readpartial(1) }
      settle
      Thread.new { Heddle.run(backend: name) { reader.close } }.join

      assert_closed(job)
    end
  end

  # A worker reads for Ruby's buffer, which the close gives back.
  def test_close_while_a_file_is_read_from_the_disk
    heddle_only("a worker")
    path = File.join(tempdir, "file")
    File.write(path, "a line of text\n" * 1000)
    reactor do
      50.times do
        file = keep(File.open(path))
        file.fsync
        file.advise(:dontneed)
        job = go { file.gets }
        file.close
        error = job.failure

        assert_includes([NilClass, IOError], error.class)
      end
    end
  end

  # The thread of the fibers computes meanwhile: it does not come to ask the kernel for anything.
  { "after_a_wait" => ->(io) { io.wait_readable(0.002) },
    "after_a_select" => ->(io) { IO.select([io], nil, [io], 0.002) } }.each do |name, wait|
    define_method("test_the_peer_sees_a_close_by_another_thread_#{name}") do
      reactor do
        one, other = socket_pair
        waited = Thread::Queue.new
        closer = Thread.new do
          waited.pop
          one.close
          other.read_nonblock(1, exception: false)
        end
        wait.call(one)
        waited << true
        nil while closer.alive?

        assert_nil(closer.value)
      end
    end
  end
end
