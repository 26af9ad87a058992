# frozen_string_literal: true

require "zlib"
require_relative "../../test_helper"

# Calls that block without a descriptor to wait on: Ruby >= 3.4 offers them to the scheduler.
contract "Offload" do
  def setup
    super
    skip("Ruby #{RUBY_VERSION} does not offer these calls to a scheduler") unless ruby_at_least?("3.4")
  end

  def test_compression
    reactor do
      data = Random.new(1).bytes(3_000_000) * 4
      packed = assert_others_run { Zlib::Deflate.deflate(data, 9) }

      assert_equal(data, Zlib::Inflate.inflate(packed))
    end
  end

  def test_opening_a_fifo_waits_for_the_other_end
    reactor do
      path = File.join(tempdir, "fifo")
      File.mkfifo(path)
      text = assert_others_run do
        go { others_have_run && File.write(path, "text") }
        File.open(path, &:read)
      end

      assert_equal("text", text)
    end
  end

  def test_many_at_once
    reactor do
      folder = tempdir
      jobs = Array.new(30) do |i|
        go do
          path = File.join(folder, i.to_s)
          File.mkfifo(path)
          writing = go { File.open(path, "w") { |file| file.write("text #{i}") } }
          File.open(path, &:read).tap { writing.value }
        end
      end

      assert_equal(Array.new(30) { |i| "text #{i}" }, jobs.map(&:value))
    end
  end

  def test_errors_come_back
    reactor do
      assert_raises(Errno::ENOENT) { File.open("/no/such/file") }
      assert_raises(Errno::ENOENT) { File.stat("/no/such/file") }
      assert_raises(Errno::ENOENT) { Dir.children("/no/such/folder") }
      assert_raises(Zlib::DataError) { Zlib::Inflate.inflate("no such format" * 100) }
    end
  end

  def test_files_and_folders
    reactor do
      folder = tempdir
      path = File.join(folder, "file")
      File.write(path, "text")

      assert_equal(4, File.stat(path).size)
      assert_equal(["file"], Dir.children(folder))
      File.rename(path, "#{path}2")
      File.chmod(0o600, "#{path}2")
      File.truncate("#{path}2", 2)

      assert_equal("te", File.read("#{path}2"))
      Dir.mkdir("#{path}3")
      Dir.rmdir("#{path}3")
      File.delete("#{path}2")

      assert_empty(Dir.children(folder))
    end
  end

  def test_big_division
    reactor do
      big = (10**60_000) + 7
      quotient = go { (big**3) / big }

      assert_equal(big**2, quotient.value)
    end
  end

  # Hazard: the hook raised while the worker still ran; the operation's data lay on a dead stack frame.
  def test_interrupted_work
    heddle_only("the fiber is interrupted")
    reactor do
      data = Random.new(1).bytes(4_000_000)
      10.times do
        job = go do
          Zlib::Deflate.deflate(data, 9)
        rescue ZeroDivisionError, Zlib::DataError
          :interrupted # Zlib itself fails when its work is stopped, also on a plain thread
        end
        sleep(0.002)
        job.fiber.raise(ZeroDivisionError) unless job.finished?

        assert(job.value == :interrupted || job.value.is_a?(String))
      end
      GC.start
    end
  end

  def test_work_with_a_timeout
    require "timeout"
    reactor do
      data = Random.new(1).bytes(20_000_000)
      begin
        Timeout.timeout(0.02) { Zlib::Deflate.deflate(data, 9) }
      rescue Timeout::Error, Zlib::DataError
        nil # Zlib gives up when it is interrupted
      end

      assert_equal("x", Zlib::Inflate.inflate(Zlib::Deflate.deflate("x")))
    end
  end

  def test_an_interrupted_open_of_a_fifo
    heddle_only("the fiber is killed")
    reactor do
      path = File.join(tempdir, "fifo")
      File.mkfifo(path)
      job = go { File.open(path, &:read) }
      settle
      # The call cannot be taken back from the kernel: the other end comes, and the fiber ends.
      killing = go { job.fiber.kill }
      settle
      writer = keep(File.open(path, File::WRONLY | File::NONBLOCK))
      killing.value
      writer.close
    rescue Errno::ENXIO
      nil # the reader is gone already: as good
    end
  end
end
