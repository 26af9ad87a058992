# frozen_string_literal: true

require_relative "../../test_helper"

# read_nonblock never waits, though Ruby calls the same hook as for a read that does.
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

  # Also after one that raised.
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

  def test_a_socket
    reactor do
      one, other = socket_pair
      error = assert_raises(IO::EAGAINWaitReadable) { one.read_nonblock(1) }

      assert_equal("Resource temporarily unavailable - read would block", error.message)
      assert_equal(:wait_readable, one.read_nonblock(1, exception: false))
      other.write("text")
      buffer = +"before"

      assert_equal(["te", buffer, "xt"], [one.read_nonblock(2), one.read_nonblock(2, buffer), buffer])
      other.close

      assert_equal("end of file reached", assert_raises(EOFError) { one.read_nonblock(1) }.message)
      assert_nil(one.read_nonblock(1, exception: false))
    end
  end

  # Ruby's own method, however it is called, also for a socket.
  def test_by_other_names
    reactor do
      [pipe, socket_pair].each do |reader, writer|
        reader.singleton_class.alias_method(:look, :read_nonblock)
        method = IO.instance_method(:read_nonblock)

        assert_equal(IO, method.owner)
        assert_equal(:wait_readable, reader.look(1, exception: false))
        assert_equal(:wait_readable, reader.method(:read_nonblock).call(1, exception: false))
        2.times { assert_equal(:wait_readable, method.bind_call(reader, 1, exception: false)) }
        job = go { reader.readpartial(1) }
        settle

        assert_equal(:wait_readable, method.bind_call(reader, 1, exception: false))
        writer.write("x")

        assert_equal("x", job.value)
        assert_equal(:wait_readable, method.bind_call(reader, 1, exception: false))
      end
    end
  end

  # A scheduler's class may have methods of its own around the hook.
  def test_a_wrapped_hook
    heddle_only("has no hooks")
    wrapped = Class.new(Heddle::Scheduler) do
      def io_read(...) = around { super }

      def around = [1].map { yield }.first
    end
    name = backend
    reader, writer = pipe
    said = Thread.new do
      Fiber.set_scheduler(wrapped.new(backend: name))
      said = []
      Fiber.schedule do
        said << reader.read_nonblock(1, exception: false)
        said << reader.readpartial(1)
      end
      Fiber.schedule { writer.write("x") }
      Fiber.set_scheduler(nil)
      said
    end.value

    assert_equal([:wait_readable, "x"], said)
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
