# frozen_string_literal: true

# bin/test: takes 30 s, 0.6 of a core
# bin/test: not forked

require "open3"
require "rbconfig"
ROOT = File.expand_path("../..", __dir__)
output, status = Open3.capture2e(File.join(ROOT, "bin/build"), "--variant", "faults", "--ruby", RbConfig.ruby)
abort "the build with faults failed:\n#{output}" unless status.success?
ENV["HEDDLE_VARIANT"] = "faults"
require_relative "../test_helper"

# System calls that fail, come short or come late: each fault surfaces as the right exception where the program waits,
# or not at all, and the scheduler goes on. See inject.c.
contract "Faults" do
  def teardown
    Heddle::Faults.clear
    super
  end

  # Nobody may notice these.
  silent = {
    "interrupted" => [%w[recv send preadv2 pwritev2 read write pread pwrite], { error: Errno::EINTR }],
    "interrupted waits" => [%w[poll epoll_wait epoll_pwait2 io_uring_enter], { error: Errno::EINTR }],
    "never ready" => [%w[recv send preadv2 pwritev2], { error: Errno::EAGAIN }],
    "short" => [%w[recv send preadv2 pwritev2 read write pread pwrite], { limit: 7, percent: 90 }],
    "late" => [%w[recv send epoll_pwait2 io_uring_enter pread pwrite], { delay_us: 300, percent: 30 }],
    "refused submissions" => [%w[io_uring_enter], { error: Errno::EBUSY }],
    "submissions without memory" => [%w[io_uring_enter], { error: Errno::EAGAIN }],
    "no pidfd" => [%w[pidfd_open], { error: Errno::EMFILE, percent: 100 }],
    "no nanoseconds" => [%w[epoll_pwait2], { error: Errno::ENOSYS, percent: 100 }]
  }
  silent.each do |name, (calls, fault)|
    define_method("test_#{name.tr(" ", "_")}") do
      heddle_only("faults")
      calls = calls.grep_v(Regexp.union(%w[uring epoll] - [backend]))
      skip("#{backend} makes no such calls") if calls.empty?
      reactor do
        inject(*calls, **fault)
        everything
        # On a busy machine time was always over before the loop slept.
        100.times { calls.any? { |call| Heddle::Faults.hits(call).positive? } || pipe.first.wait_readable(0.01) }
      end

      assert_operator(calls.sum { |call| Heddle::Faults.hits(call) }, :>, 0, "no call has failed")
    end
  end

  # Nothing is in the page cache, and the workers are interrupted.
  { "interrupted" => { error: Errno::EINTR }, "late" => { delay_us: 300 } }.each do |name, fault|
    define_method("test_#{name}_workers") do
      heddle_only("faults")
      needs_preadv2
      reactor do
        inject("preadv2", "pwritev2", error: Errno::EAGAIN, percent: 100)
        inject("pread", "pwrite", "read", **fault)
        files
      end

      assert_operator(Heddle::Faults.hits("pread") + Heddle::Faults.hits("read"), :>, 0)
    end
  end

  # The ring with the fewest entries: submissions and completions do not fit.
  def test_a_full_queue
    heddle_only("faults")
    skip("epoll has no queue") unless backend == "uring"
    inject("io_uring_setup", limit: 2, percent: 100)
    reactor do
      pipes = Array.new(200) { pipe }
      reading = pipes.map { |reader, _| go { reader.readpartial(10) } }
      settle
      pipes.each_with_index { |(_, writer), i| writer.write(i.to_s) }

      assert_equal(Array.new(200, &:to_s), reading.map(&:value))
      assert_everything_is_taken_back
      everything
    end
  end

  # The thread of the loop has let the GVL go, and is about to give a request to the kernel, when another thread closes
  # a twin of its socket. The request does not go to the socket that has the number next.
  def test_a_twin_is_closed_while_a_request_is_on_its_way_to_the_kernel
    heddle_only("faults")
    skip("epoll has no requests") unless backend == "uring"
    reactor do
      reader, peer = socket_pair
      reader.autoclose = false
      job = go { Array.new(2) { reader.readpartial(100) } }
      closer = Thread.new { close_twin_of_one_that_reads_again(reader, peer) }
      fresh = closer.value

      assert_instance_of(Errno::EBADF, job.failure)
      assert_equal("fresh", fresh.readpartial(100))
    end
  end

  def test_no_memory_to_wait_for_an_io
    heddle_only("faults")
    call, errors = backend == "epoll" ? ["epoll_ctl", [Errno::ENOMEM, Errno::ENOSPC]] : ["realloc", [Errno::ENOMEM]]
    errors.each do |error|
      reactor do
        pipes = Array.new(300) { pipe }
        inject(call, error: error, percent: 100)
        reading = pipes.map { |reader, _| go { reader.readpartial(10) } }
        settle
        Heddle::Faults.clear
        pipes.each { |_, writer| writer.write("x") }
        outcomes = reading.map { |job| job.failure&.class || job.value }

        assert_empty(outcomes.uniq - [error, "x"])
        assert_includes(outcomes, error)
        everything
      end
    end
  end

  def test_no_memory_for_timers
    heddle_only("faults")
    reactor do
      inject("realloc", error: Errno::ENOMEM, percent: 100)
      sleeping = Array.new(300) { go { sleep(0.05) } }
      settle
      Heddle::Faults.clear
      failures = sleeping.filter_map(&:failure)

      refute_empty(failures)
      assert_empty(failures.grep_v(Errno::ENOMEM))
      everything
    end
  end

  # Bytes that have come for a fiber that gets an exception do not fit into Ruby's read buffer: nothing refers to its
  # stack then.
  def test_no_memory_for_bytes_of_a_fiber_that_gets_an_exception
    heddle_only("faults")
    skip("epoll reads no bytes") unless backend == "uring"
    reactor do
      reader, peer = socket_pair
      fiber = nil
      job = go do
        fiber = Fiber.current
        reader.readpartial(10)
      rescue NoMemoryError => e
        e
      end
      settle
      peer.write_nonblock("bytes") # a write that waits would let the reader go on
      sleep(0) until Heddle.stats.tasks[:ready] > 0 # at each look this fiber is the first that is ready
      inject("ruby_xmalloc2", error: Errno::ENOMEM, percent: 100)
      fiber.raise(StopIteration)

      assert_instance_of(NoMemoryError, job.value)
      Heddle::Faults.clear

      refute_includes(Fiber.scheduler.fibers, fiber)
      everything
    end
  end

  # Every call, for want of memory or of descriptors: who needed it hears of it, the others at most of a closed IO.
  memory = %w[malloc calloc realloc]
  (%w[recv send preadv2 pwritev2 pread pwrite poll epoll_ctl epoll_wait epoll_pwait2 io_uring_enter fcntl
      pthread_create pidfd_open] + memory).each do |call|
    define_method("test_failures_of_#{call}") do
      heddle_only("faults")
      error = memory.include?(call) || backend == "uring" ? Errno::ENOMEM : Errno::EMFILE
      failures = reactor do
        inject(call, error: error, percent: 20)
        survive
      end
      Heddle::Faults.clear

      allowed = [error, IOError, EOFError, Errno::ECONNRESET, Errno::EPIPE, Socket::ResolutionError]
      allowed << NoMemoryError if memory.include?(call)

      assert_empty(failures.reject { |failure| allowed.include?(failure.class) })
      reactor { everything }
    end
  end

  # The ring or the epoll set cannot be made: an exception that says so, and nothing left open.
  { "epoll_create1" => Errno::EMFILE, "eventfd" => Errno::EMFILE, "calloc" => Errno::ENOMEM, "mmap" => Errno::ENOMEM,
    "io_uring_setup" => Errno::ENOMEM, "epoll_ctl" => Errno::ENOSPC }.each do |call, error|
    define_method("test_no_backend_for_want_of_#{call}") do
      heddle_only("faults")
      Heddle.run(backend: backend) { nil }
      inject(call, error: error, percent: 100)
      begin
        Heddle.run(backend: backend) { sleep(0) }

        assert_equal(0, Heddle::Faults.hits(call), "#{call} failed, and nobody heard of it")
      rescue SystemCallError => e
        assert_instance_of(error, e)
      rescue Heddle::Error => e
        assert_match(/#{Regexp.escape(error.new.message)}|memory|too many open files/i, e.message)
      end
      Heddle::Faults.clear
      reactor { everything }
    end
  end

  # The next best backend takes the place of one that cannot be opened.
  { %w[mmap] => "epoll", %w[mmap epoll_create1] => "poll" }.each do |calls, name|
    define_method("test_without_#{calls.join("_and_")}_there_is_#{name}") do
      heddle_only("faults")
      skip("HEDDLE_BACKEND forces a backend") if ENV["HEDDLE_BACKEND"]
      inject(*calls, error: Errno::ENOMEM, percent: 100)
      found = Thread.new { Heddle.run { [sleep(0), Fiber.scheduler.backend].last } }.value

      assert_equal(name, found)
    end
  end

  def test_no_thread_for_a_name
    heddle_only("faults")
    reactor do
      inject("pthread_create", error: Errno::EAGAIN, percent: 100)

      assert_includes(Fiber.scheduler.address_resolve("localhost").to_a, "127.0.0.1")
      assert_kind_of(String, Addrinfo.tcp("127.0.0.1", 80).getnameinfo.first)
    end
  end

  def test_no_answer_for_a_name
    heddle_only("faults")
    reactor do
      inject("getaddrinfo", errno: Socket::EAI_AGAIN, percent: 100)

      assert_raises(Socket::ResolutionError) { Fiber.scheduler.address_resolve("localhost") }
      inject("getaddrinfo", errno: Socket::EAI_NONAME, percent: 100)

      assert_nil(Fiber.scheduler.address_resolve("localhost"))
    end
  end

  # No descriptor for the worker that would do it, no memory for the bytes, no worker: it is done inline.
  { "fcntl" => Errno::EMFILE, "malloc" => Errno::ENOMEM, "pthread_create" => Errno::EAGAIN }.each do |call, error|
    define_method("test_a_file_without_#{call}") do
      heddle_only("faults")
      reactor do
        inject("preadv2", "pwritev2", error: Errno::EAGAIN, percent: 100) # not in the page cache
        inject(call, error: error, percent: 100)
        files
        Heddle::Faults.clear
        everything
      end
    end
  end

  # An operation of Ruby's that has no thread, with others that have one, and with one that may last for ever.
  def test_no_thread_for_a_blocking_operation
    heddle_only("faults")
    path = File.join(tempdir, "file")
    File.write(path, "text")
    first, second = Array.new(2) { File.open(path, "r+") }
    reactor do
      first.flock(File::LOCK_EX)
      inject("pthread_create", error: Errno::EAGAIN, percent: 100)
      locking = Array.new(3) { go { File.open(path) { |file| file.flock(File::LOCK_SH) } } }
      syncing = Array.new(3) { go { second.fsync } }

      assert_equal([0] * 3, syncing.map(&:value))
      assert(locking.none?(&:finished?))
      first.flock(File::LOCK_UN)

      assert_equal([0] * 3, locking.map(&:value))
    end
  ensure
    [first, second].compact.each(&:close)
  end

  def test_a_broken_disk
    heddle_only("faults")
    needs_preadv2
    reactor do
      path = File.join(tempdir, "file")
      File.binwrite(path, "text")
      File.open(path, "rb") do |file|
        inject("preadv2", error: Errno::EAGAIN, percent: 100)
        inject("pread", error: Errno::EIO, percent: 100)

        assert_raises(Errno::EIO) { file.pread(4, 0) }
        Heddle::Faults.clear

        assert_equal("text", file.pread(4, 0))
      end
      everything
    end
  end

  # A task goes on when the write is over that a worker makes for it. Meanwhile it is killed, and then an exception
  # comes that takes longer to make than the write takes: it is there when the kill goes on.
  def test_killed_and_timed_out_while_a_worker_writes
    heddle_only("faults")
    slow = Class.new(StandardError) { def initialize(*) = Fiber.blocking { sleep(0.3) } && super }
    reactor do
      inject("pwritev2", error: Errno::EAGAIN, percent: 100)
      inject("pwrite", delay_us: 200_000, percent: 100)
      ended = []
      path = File.join(tempdir, "file")
      File.open(path, "wb") do |file|
        writing = Fiber.schedule do
          Timeout.timeout(0.1, slow) { file.pwrite("text", 0) }
        ensure
          ended << :killed
        end
        sleep(0.02)
        writing.kill
        wait_until { !writing.alive? }
      end

      assert_equal([:killed], ended)
      assert_equal("text", File.binread(path))
    end
  end

  private

  def needs_preadv2 = skip_on_musl("it has no preadv2 that could fail: Heddle makes the system call itself")

  def inject(*calls, error: nil, errno: error ? error::Errno : 0, percent: 50, limit: 0, delay_us: 0)
    calls.each { |call| Heddle::Faults.set(call, errno, percent, limit, delay_us) }
  end

  # @return [UNIXSocket] the socket that has its number afterwards
  def close_twin_of_one_that_reads_again(reader, peer)
    sleep 0.1 # (it sleeps in the kernel now, and does not look there again before it does so for the second time)
    inject("io_uring_enter", delay_us: 300_000, percent: 100)
    peer.write("first")
    sleep 0.1
    UNIXSocket.for_fd(reader.fileno).close
    fresh, fresh_peer = socket_pair.sort_by { |socket| (socket.fileno - reader.fileno).abs }
    fresh_peer.write("fresh")
    fresh
  end

  # The exceptions of parts of which any may fail.
  def survive
    parts = [-> { closing(*tcp_pair) { |ours, theirs| ping_pong(ours, theirs) } },
             -> { closing(*pipe) { |reader, writer| bulk(reader, writer) } },
             -> { closing(*socket_pair) { |reader, writer| bulk(reader, writer) } }, -> { sleep(0.01) }, -> { child },
             -> { resolve_name }, -> { File.read(__FILE__) }]
    jobs = Array.new(5) { parts }.flatten.map { |part| go(&part) }
    jobs.filter_map(&:failure) + @jobs.filter_map(&:failure)
  end

  def resolve_name
    Fiber.scheduler.address_resolve("localhost")
  rescue NoMemoryError
    raise Errno::ENOMEM
  end

  # Who fails closes both ends, and the other part of it ends too.
  def closing(*ios)
    yield(*ios)
  ensure
    ios.each(&:close)
  end

  # A bit of all that waits.
  def everything
    jobs = [go { ping_pong(*tcp_pair) }, go { bulk(*pipe) }, go { bulk(*socket_pair) }, go { sleep(0.01) },
            go { files }, go { selecting(*pipe) }, go { child }, go { limits(pipe.first) }]

    jobs.each(&:value)
    # On a busy machine somebody was ready all the time until now.
    3.times { assert_nil(pipe.first.wait_readable(0.01)) }
  end

  def ping_pong(ours, theirs)
    answering = go { closing(theirs) { 20.times { theirs.write(theirs.readpartial(10)) } } }
    20.times do |i|
      ours.write(i.to_s)

      assert_equal(i.to_s, ours.readpartial(10))
    end
    answering.value
  end

  def bulk(reader, writer)
    sent = Random.new(1).bytes(30_000)
    writing = go { closing(writer) { writer.write(sent) } }

    got = reader.read.b

    assert_equal(30_000, writing.value)
    assert_equal([30_000, true], [got.bytesize, got == sent])
  end

  def files
    path = File.join(tempdir, "file")
    text = "0123456789" * 100
    File.binwrite(path, text)

    assert_equal(text, File.binread(path))
    File.open(path, "r+b") do |file|
      assert_equal("345", file.pread(3, 3))
      file.pwrite("x", 999)
      file.seek(0, :END)
      file.write("end")
    end

    assert_equal("#{text[0..-2]}xend", File.binread(path))
  end

  def selecting(reader, writer)
    assert_nil(IO.select([reader], nil, nil, 0.005))
    waiting = go { IO.select([reader]) }
    writer.write("x")

    assert_equal([[reader], [], []], waiting.value)
  end

  def child
    assert_equal(3, Process.wait2(spawn("sleep 0.02; exit 3")).last.exitstatus)
  end

  def limits(reader)
    reader.timeout = 0.01

    assert_raises(IO::TimeoutError) { reader.readpartial(1) }
    assert_nil(reader.wait_readable(0.001))
  end

  def assert_everything_is_taken_back
    counts = Fiber.scheduler.__send__(:counts)

    assert_equal([0, 0], counts.values_at(:armed, :timers))
  end
end

# The random operations of test/fuzz/ in the build with assertions, with and without faults that nobody may notice.
class FuzzWithFaultsTest < HeddleTest
  TestSupport::Contract.backends.each do |backend, reason|
    next if backend == TestSupport::Contract::REFERENCE

    %w[1 2].each do |parity| # odd seeds make transfers short, even ones put them off
      define_method("test_#{backend}_#{parity}") do
        skip("backend #{backend}: #{reason}") if reason
        seed = (rand(100_000_000) * 2) + Integer(parity)
        outcome = run_command(*ruby_command, File.join(ROOT, "test/fuzz/run.rb"), "--seconds", "1.5", "--faults",
                              "--seed", seed.to_s, env: { "HEDDLE_BACKEND" => backend })

        assert_predicate(outcome, :success?, "#{outcome.out}\n#{outcome.err}")
        assert_match(/^[1-9]\d* rounds, 0 failed/, outcome.out)
      end
    end
  end
end

# What the release build must not have.
class NoFaultsTest < HeddleTest
  def test_the_release_build_has_no_faults
    code = 'print Heddle.const_defined?(:Faults), $LOADED_FEATURES.grep(/heddle_native/).first.include?("/build/")'
    outcome = run_command(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-rheddle", "-e", code)

    assert_equal("falsefalse", outcome.out)
  end
end
