# frozen_string_literal: true

require_relative "../test_helper"

# read_nonblock never waits, where Ruby calls the same hook as for a read that does; without Heddle nothing changes.
contract "ReadNonblock" do
  def test_it_does_not_let_others_run
    heddle_only("threads are switched by time")
    reactor do
      reader, = pipe
      turns = 0
      running = true
      ticker = go { (turns += 1) && sleep(0) while running }
      before = turns
      50.times { reader.read_nonblock(1, exception: false) }

      assert_equal(before, turns)
      running = false
      ticker.value
    end
  end

  # The wish not to wait ends with the call, also when it raises.
  def test_the_next_read_waits
    reactor do
      reader, writer = pipe
      assert_raises(IO::WaitReadable) { reader.read_nonblock(1) }
      assert_raises(TypeError) { reader.read_nonblock("x") }
      job = go { reader.readpartial(1) }
      settle
      writer.write("x")

      assert_equal("x", job.value)
    end
  end

  def test_argf
    code = <<~RUBY
      answer = begin
        ARGF.read_nonblock(10)
      rescue IO::WaitReadable => e
        e.class
      end
      puts answer
      puts ARGF.read_nonblock(10, exception: false)
    RUBY
    code = "Heddle.run(backend: #{backend.inspect}) do\n#{code}end\n" unless reference?
    reader, writer = pipe
    out_reader, out_writer = pipe
    command = ruby_command
    command << "-rheddle" unless reference?
    pid = spawn(*command, "-e", code, in: reader, out: out_writer)
    out_writer.close
    Process.wait(pid)
    writer.close

    assert_equal("IO::EAGAINWaitReadable\nwait_readable\n", out_reader.read)
  end

  def test_without_a_scheduler
    reader, writer = pipe
    error = assert_raises(IO::EAGAINWaitReadable) { reader.read_nonblock(1) }

    assert_equal("Resource temporarily unavailable - read would block", error.message)
    writer.write("x")

    assert_equal("x", reader.read_nonblock(1))
  end
end
