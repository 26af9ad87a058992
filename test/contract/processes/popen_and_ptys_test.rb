# frozen_string_literal: true

require "open3"
require "pty"
require_relative "../../test_helper"

# Processes with pipes: IO.popen, Open3, PTY.
contract "Popen" do
  def test_read
    reactor do
      assert_equal("out\n", assert_others_run { IO.popen("sleep 0.15; echo out", &:read) })
      assert_predicate($?, :success?)
      assert_equal(%w[a b], IO.popen(%w[printf a\nb]) { |io| io.readlines(chomp: true) })
    end
  end

  def test_write
    path = File.join(tempdir, "out")
    reactor do
      IO.popen("sleep 0.1; cat > #{path}", "w") { |io| assert_others_run { io.write("x" * 300_000) && io.close } }

      assert_equal(300_000, File.size(path))
    end
  end

  # The IO for writing is hidden behind the one for reading.
  def test_both_ways
    reactor do
      IO.popen("cat", "r+") do |io|
        10.times do |i|
          io.puts("line #{i}")

          assert_equal("line #{i}\n", io.gets)
        end
        io.close_write

        assert_equal("", io.read)
      end
    end
  end

  def test_close_gives_the_status
    reactor do
      io = IO.popen("exit 5")
      io.read
      io.close

      assert_equal(5, $?.exitstatus)
      io = IO.popen("sleep 0.15; exit 6")
      assert_others_run { io.close }

      assert_equal(6, $?.exitstatus)
    end
  end

  def test_a_program_that_is_not_there
    reactor { assert_raises(Errno::ENOENT) { IO.popen(["/no/such/program"]) } }
  end

  def test_many_at_once
    reactor do
      jobs = Array.new(20) { |i| go { IO.popen("sleep 0.1; echo #{i}", &:read) } }

      assert_equal(Array.new(20) { |i| "#{i}\n" }, jobs.map(&:value))
    end
  end

  def test_open3
    reactor do
      out, err, status = assert_others_run do
        Open3.capture3("sleep 0.15; tr a-z A-Z; echo err >&2; exit 2", stdin_data: "text")
      end

      assert_equal(["TEXT", "err\n", 2], [out, err, status.exitstatus])
    end
  end

  def test_open3_popen3
    reactor do
      Open3.popen3("cat") do |input, output, _, thread|
        input.puts("hello")

        assert_equal("hello\n", output.gets)
        input.close

        assert_predicate(thread.value, :success?)
      end
    end
  end

  def test_pty_spawn
    reactor do
      PTY.spawn("sh", "-c", "read x; echo got $x") do |reader, writer, pid|
        [reader, writer].each { |io| keep(io) } # Ruby leaves them open
        job = go { Array.new(2) { reader.gets }.last }
        settle
        writer.puts("it")

        assert_equal("got it\r\n", job.value)
        Process.wait(pid)
      end
    end
  end
end
