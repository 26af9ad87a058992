# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "free_port"

module TestSupport
  # Small helpers for all tests.
  module Tools
    include FreePort

    # A folder that is removed after the test.
    def tempdir
      dir = Dir.mktmpdir("heddle-test")
      (@tempdirs ||= []) << dir
      dir
    end

    def remove_tempdirs
      @tempdirs&.each { |dir| FileUtils.rm_rf(dir) }
      @tempdirs = nil
    end

    # Closes the given IO after the test, if nobody did before. Returns it.
    def keep(io)
      (@kept ||= []) << io
      io
    end

    def close_kept
      @kept&.each do |io|
        io.close
      rescue IOError, SystemCallError
        nil
      end
      @kept = nil
    end

    # Two ends of a pipe, closed after the test.
    def pipe = IO.pipe.each { |io| keep(io) }

    # Two connected UNIX sockets, closed after the test.
    def socket_pair = UNIXSocket.pair.each { |io| keep(io) }

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Seconds that the block takes.
    def elapsed
      started = now
      yield
      now - started
    end

    # Returns the block's value as soon as it is truthy; fails after +timeout+ seconds. The pauses become longer: a look
    # takes time from what is waited for.
    def wait_until(what = "the condition", timeout: 200)
      started = now
      loop do
        value = yield
        return value if value

        waited = now - started
        flunk("#{what} did not come true within #{timeout} s") if waited > timeout
        sleep((waited / 50).clamp(0.002, 0.1))
      end
    end

    # The block's value is below the limit in one of three tries: a busy machine, or a step that memory grows by, spoils
    # one of them, what is wrong all.
    def assert_below(limit, what = nil)
      values = []
      values << yield until values.size == 3 || values.last&.<(limit)

      assert_operator(values.last, :<, limit, [what, values].compact.join(": "))
    end

    # What the block waits for is waited for in peace: a loop that spins looks at the kernel thousands of times.
    def assert_no_spinning
      return yield unless defined?(Heddle) # (the reference run)

      before = Heddle.stats.polls
      value = yield

      assert_operator(Heddle.stats.polls - before, :<, 100, "it spins")
      value
    end

    # Lets three threads do the same at once, again and again, while one of them gets an exception and one is killed.
    def raise_into_threads
      reported = Thread.report_on_exception
      Thread.report_on_exception = false
      200.times do |i|
        threads = Array.new(3) { Thread.new { 3.times { yield } } }
        Thread.pass if i.odd?
        threads.first.raise(IOError)
        threads.last.kill
        threads.each { |thread| thread.join rescue nil } # rubocop:disable Style/RescueModifier
      end
    ensure
      Thread.report_on_exception = reported
    end

    # For an order of events that only a margin of time can bring about: yields margins in seconds, wider and wider,
    # until the block says that things came in that order.
    def in_time(*margins)
      margins = [0.1, 1.0, 10.0] if margins.empty?
      margins.any? { |seconds| yield(seconds) } or flunk("not within #{margins.last} s either")
    end

    # Seconds for which the threads of this process wanted a processor and had none (0 where the kernel does not say
    # it): a thread that waits may hold the lock that another one needs.
    def starved
      Fiber.blocking { Dir.glob("/proc/self/task/*/schedstat").sum { |path| File.read(path).split[1].to_i } } / 1e9
    rescue SystemCallError
      0
    end

    # Ends the child processes of this test.
    def kill_children
      (Leaks.children - @leaks_before.children).each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    end

    # Number of open descriptors of this process.
    def descriptor_count
      Leaks.descriptors.size
    end

    # Resident memory of this process in KB.
    def memory_kb
      Integer(File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1])
    end

    # Skips the test unless this process may open that many descriptors. The soft limit is raised as far as needed.
    def need_descriptors(count)
      soft, hard = Process.getrlimit(:NOFILE)
      skip("hard limit of open files is #{hard}, the test needs #{count}") if hard < count
      Process.setrlimit(:NOFILE, count, hard) if soft < count
    end

    # Closes IOs that may be closed already.
    def close_all(*ios)
      ios.flatten.each { |io| io&.close }
    end

    # Clears O_NONBLOCK, as a descriptor inherited from a shell has it.
    def blocking_mode(io)
      require "fcntl"
      io.fcntl(Fcntl::F_SETFL, io.fcntl(Fcntl::F_GETFL) & ~File::NONBLOCK)
      io
    end

    def ruby_at_least?(version)
      Gem::Version.new(RUBY_VERSION) >= Gem::Version.new(version)
    end
  end
end
