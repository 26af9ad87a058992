# frozen_string_literal: true

# bin/test: takes 14 s, 0.7 of a core

require_relative "../../test_helper"
require "fcntl"

# Regular files: every kind of access gives what plain Ruby gives.
contract "RegularFile" do
  def data
    @data ||= Random.new(11).bytes(300_000).freeze
  end

  def path
    @path ||= File.join(tempdir, "file").tap { |name| File.binwrite(name, data) }
  end

  def test_read_whole_files
    reactor do
      assert_equal(data, File.binread(path))
      assert_equal(data[100, 50], File.binread(path, 50, 100))
      File.write(path, "a\nb\nc")

      assert_equal(%W[a\n b\n c], File.readlines(path))
      assert_equal(%w[a b c], File.foreach(path, chomp: true).to_a)
      assert_equal("a\nb\nc", File.read(path))
    end
  end

  def test_write_whole_files
    reactor do
      assert_equal(data.bytesize, File.binwrite(path, data))
      assert_equal(data, File.binread(path))
      File.write(path, "tail", mode: "a")

      assert_equal("#{data}tail".b, File.binread(path))
    end
  end

  def test_read_in_pieces_until_the_end
    reactor do
      File.open(path, "rb") do |file|
        assert_equal(data[0, 1000], file.read(1000))
        assert_equal(data[1000, 1000], file.readpartial(1000))
        assert_equal(data[2000..], file.read)
        assert_nil(file.read(1))
        assert_raises(EOFError) { file.readpartial(1) }
        assert_predicate(file, :eof?)
      end
    end
  end

  def test_sysread_syswrite_and_sysseek
    reactor do
      File.open(path, "r+b") do |file|
        assert_equal(data[0, 1000], file.sysread(1000))
        assert_equal(2000, file.sysseek(2000))
        assert_equal(4, file.syswrite("abcd"))
        assert_equal(2000, file.sysseek(-4, IO::SEEK_CUR))
        assert_equal("abcd", file.sysread(4))
        file.sysseek(0, IO::SEEK_END)

        assert_raises(EOFError) { file.sysread(1) }
      end
    end
  end

  def test_seek_pos_and_rewind
    reactor do
      File.open(path, "rb") do |file|
        file.seek(-10, IO::SEEK_END)

        assert_equal(data[-10..], file.read)
        file.rewind

        assert_equal(data[0, 10], file.read(10))
        assert_equal(10, file.pos)
        file.pos = 500

        assert_equal(data[500, 5], file.read(5))
      end
    end
  end

  def test_pread_and_pwrite
    reactor do
      File.open(path, "r+b") do |file|
        assert_equal(data[1000, 500], file.pread(500, 1000))
        assert_equal(0, file.pos)
        assert_equal(4, file.pwrite("abcd", 1002))
        assert_equal("#{data[1000, 2]}abcd", file.pread(6, 1000))
        buffer = +""
        file.pread(10, 0, buffer)

        assert_equal(data[0, 10], buffer.b)
        assert_equal("", file.pread(0, 0))
        assert_raises(EOFError) { file.pread(1, data.bytesize + 10) }
        assert_equal(data.bytesize - 100, file.pread(data.bytesize, 100).bytesize)
      end
    end
  end

  # One call moves all of it, as the kernel does, also where each part has to wait for the disk: hardly a program looks
  # at how much was written.
  def test_one_large_transfer
    text = Random.bytes(2_500_000)
    reactor do
      File.open(path, "w+b") do |file|
        assert_equal([2_500_000] * 2, [file.syswrite(text), file.pwrite(text, 2_500_000)])
        file.fsync
        [true, true, false].each do |cold|
          file.advise(:dontneed) if cold

          assert_equal(text.hash, file.pread(2_500_000, 2_500_000).hash)
          file.advise(:dontneed) if cold
          file.sysseek(0)

          assert_equal([text.hash] * 2, [file.sysread(2_500_000), file.readpartial(2_500_000)].map(&:hash))
        end
      end
    end
  end

  # What one system call appends, it appends in one piece.
  def test_large_records_that_several_append
    reactor do
      { syswrite: 1_000_000, write: 600_000, print: 1_500_000 }.each do |method, size|
        File.write(path, "")
        jobs = %w[a b c].map do |letter|
          go { File.open(path, "a") { |file| 5.times { file.public_send(method, letter * size) } } }
        end
        jobs.each(&:value)
        records = File.read(path).scan(/a+|b+|c+/)

        assert_equal(15 * size, records.sum(&:size))
        assert_empty(records.reject { |record| (record.size % size).zero? }.map(&:size))
      end
    end
  end

  # One system call moves 0x7ffff000 bytes at most. Ruby makes an int of the value that the hook of a scheduler returns.
  once def test_more_than_two_gigabytes
    available = File.read("/proc/meminfo")[/^MemAvailable: *(\d+)/, 1].to_i
    skip "takes 2 GB of memory" if available < 4_000_000
    size = (1 << 31) + 4096
    reactor do
      text = "x" * size

      File.open(File::NULL, "w") do |file|
        assert_equal([size, 0x7ffff000], [file.write(text), file.syswrite(text)])
      end
      text.clear
    end
  end

  def test_others_run_between_the_parts_of_a_transfer
    heddle_only("turns of a scheduler")
    text = "x" * 30_000_000
    turns = 0
    over = false
    reactor do
      go { sleep(0) && turns += 1 until over }
      File.open(path, "w+b") do |file|
        [-> { file.pwrite(text, 0) }, -> { file.pread(30_000_000, 0) }].each do |transfer|
          before = turns
          transfer.call

          assert_operator(turns - before, :>, 5, "it was transferred in one part")
        end
      end
    ensure
      over = true
    end
  end

  def test_pread_of_a_socket_is_refused
    reactor do
      one, other = socket_pair
      other.write("text")

      assert_raises(Errno::ESPIPE) { one.pread(1, 0) }
      assert_raises(Errno::ESPIPE) { one.pwrite("x", 0) }
      assert_equal("text", one.readpartial(10))
      assert_equal(:wait_readable, other.read_nonblock(1, exception: false))
    end
  end

  def test_pread_of_a_pipe_is_refused
    reactor do
      reader, = pipe

      assert_raises(Errno::ESPIPE) { reader.pread(1, 0) }
    end
  end

  def test_append_and_mixed_access
    reactor do
      File.open(path, "a+b") do |file|
        file.write("tail")

        assert_equal(data[0, 4], file.pread(4, 0))
        file.flush

        assert_equal(data.bytesize + 4, file.size)
      end
    end
  end

  def test_buffered_writes_reach_the_file
    reactor do
      File.open(path, "wb") do |file|
        1000.times { |i| file.puts(i) }
        file.fsync
        file.fdatasync

        assert_equal(1000, File.readlines(path).size)
        file.print("more")
      end

      assert_equal("more", File.readlines(path).last)
    end
  end

  def test_nonblock_on_a_file
    reactor do
      File.open(path, "rb") { |file| assert_equal(data[0, 10], file.read_nonblock(10)) }
    end
  end

  def test_wait_on_a_file
    reactor do
      File.open(path, "r+b") do |file|
        assert_same(file, file.wait_readable)
        assert_same(file, file.wait_readable(0))
        assert_same(file, file.wait_writable)
      end
    end
  end

  def test_many_files_at_once
    folder = tempdir
    reactor do
      jobs = Array.new(50) do |i|
        go do
          name = File.join(folder, i.to_s)
          File.write(name, "content #{i}\n" * 1000)
          File.read(name)
        end
      end

      jobs.each_with_index { |job, i| assert_equal("content #{i}\n" * 1000, job.value) }
    end
  end

  # What a task reads or writes on a worker thread closes no descriptor of the file.
  def test_record_locks_stay
    lock = ->(type) { [type, 0, 0, 0, 0].pack("s!s!x4q!q!i!x4") }
    asking = "print File.open(ARGV[0]) { |f| f.fcntl(Fcntl::F_GETLK, ARGV[1] = [Fcntl::F_WRLCK, 0, 0, 0, 0]" \
             ".pack('s!s!x4q!q!i!x4')); ARGV[1].unpack1('s!') == Fcntl::F_UNLCK }"
    free = -> { run_ruby(asking, path, heddle: false, options: %w[-rfcntl]).out }
    reactor do
      file = File.new(path, "r+")
      file.sync = true
      file.fcntl(Fcntl::F_SETLK, lock.call(Fcntl::F_WRLCK))
      file.write("hello")
      file.seek(0)

      assert_equal("hello", file.read(5))
      assert_equal("false", free.call, "it is free")
      file.fcntl(Fcntl::F_SETLK, lock.call(Fcntl::F_UNLCK))

      assert_equal("true", free.call)
    ensure
      file&.close
    end
  end

  # Its task does not end before a write is over that a worker makes: or the file would be locked still.
  def test_a_write_that_is_cancelled_is_over_when_its_task_ends
    heddle_only("cancel")
    Heddle.run(backend: backend) do
      locks = Array.new(5) do
        file = File.new(path, File::RDWR | File::TRUNC | File::SYNC)
        file.sync = true
        file.flock(File::LOCK_EX)
        task = Heddle.spawn { file.write("a" * (8 << 20)) }
        sleep(0.002)
        task.cancel.wait
        file.close
        File.open(path) { |other| other.flock(File::LOCK_EX | File::LOCK_NB) }
      end

      assert_equal([0] * 5, locks)
    end
  end

  # Both reach the task: the first one at the write (or after it, if a worker need not make it), the other one later.
  def test_two_exceptions_during_a_write
    heddle_only("interrupts")
    said = []
    Heddle.run(backend: backend) do
      Heddle.spawn do
        File.open(path, "w") do |file|
          [KeyError, ZeroDivisionError].each { |error| Fiber.scheduler.interrupt(Fiber.current, error.new("sent")) }
          file.syswrite("x" * 100)
          sleep(0.001)
        rescue KeyError
          said << :first
        end
        sleep(0.001)
      rescue ZeroDivisionError
        said << :second
      end
    end

    assert_equal(%i[first second], said)
  end

  # Between two pieces another task runs, and cancels the reader: it has all bytes, and is cancelled at its next wait.
  # Where the kernel does not say whether a read would wait for the disk, a worker reads, and a cancel ends this wait.
  def test_a_cancel_between_the_pieces_of_a_read
    heddle_only("cancel")
    size = 4 << 20
    File.binwrite(path, "x" * size)
    said = assert_script(<<~RUBY)
      got = nil
      Heddle.run(backend: #{backend.inspect}) do
        file = File.open(#{path.inspect})
        file.pread(1, 0)
        reader = Heddle.spawn(isolated: true) { got = file.read(#{size}).bytesize and sleep }
        reader.cancel
        reader.wait
        print(Heddle.stats.workers[:threads].zero? ? [got, reader.cancelled?] : "a worker")
      end
    RUBY
    skip("a worker makes the read") if said == "a worker"

    assert_equal("[#{size}, true]", said)
  end

  def test_errors
    reactor do
      assert_raises(Errno::ENOENT) { File.read("#{path}.not") }
      assert_raises(Errno::EISDIR) { File.read(File.dirname(path)) }
      File.open(path, "rb") { |file| assert_raises(IOError) { file.write("x") } }
      File.open(path, "wb") { |file| assert_raises(IOError) { file.read } }
    end
  end

  def test_a_full_device
    skip("no /dev/full") unless File.exist?("/dev/full")
    reactor do
      file = keep(File.open("/dev/full", "w"))
      file.sync = true

      assert_raises(Errno::ENOSPC) { file.write("x") }
    end
  end

  def test_devices
    reactor do
      assert_equal(0, File.read(File::NULL).bytesize)
      assert_equal("\0" * 100, File.open("/dev/zero") { |file| file.read(100) })
      assert_equal(16, File.open("/dev/urandom") { |file| file.read(16) }.bytesize)
      assert_match(/\Aruby|\A/, File.read("/proc/self/comm"))
    end
  end
end
