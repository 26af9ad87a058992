# frozen_string_literal: true

require_relative "../../test_helper"

# Who is woken by a close finds the IO closed, as a thread does. A loop that tries again as long as it is open ends.
contract "CloseTryAgain" do
  def until_closed(io)
    errors = []
    begin
      yield
    rescue IOError => e
      errors << e.message
      retry unless io.closed? || errors.size > 20
    end
    errors
  end

  closers = {
    "" => ->(_, &close) { close.call },
    "_from_a_thread" => ->(_, &close) { Thread.new(&close).join },
    "_from_another_scheduler" => ->(test, &close) { Thread.new { test.reactor(&close) }.join }
  }

  closers.each do |name, closer|
    define_method("test_accept#{name}") do
      reactor do
        server = tcp_server
        jobs = Array.new(2) { go { until_closed(server) { server.accept } } }
        settle
        closer.call(self) { server.close }

        jobs.each { |job| assert_equal(["stream closed in another thread"], job.value) }
      end
    end

    define_method("test_a_reader_and_a_writer#{name}") do
      reactor do
        one, = socket_pair
        fill(one)
        jobs = [go { until_closed(one) { one.gets } }, go { until_closed(one) { one.write("x" * 100_000) } }]
        settle
        closer.call(self) { one.close }

        jobs.each { |job| assert_equal(["stream closed in another thread"], job.value) }
      end
    end

    define_method("test_popen#{name}") do
      reactor do
        io = keep(IO.popen("cat", "r+"))
        job = go { until_closed(io) { io.gets } }
        settle
        closer.call(self) { io.close }

        assert_equal(["stream closed in another thread"], job.value)
      end
    end
  end

  def test_the_end_of_the_block_of_popen
    reactor do
      job = IO.popen("cat", "r+") do |io|
        reading = go { until_closed(io) { io.gets } }
        settle
        reading
      end

      assert_equal(["stream closed in another thread"], job.value)
    end
  end

  # The content of the buffer is written first; the IO is open until then.
  def test_a_close_that_writes_first
    heddle_only("threads hang, or not")
    reactor do
      reader, writer = pipe
      fill(writer)
      writer.sync = false
      writer.write("last")
      waiting = go { until_closed(writer) { writer.wait_writable } }
      settle
      closing = go { writer.close }
      text = reader.read
      closing.value

      assert_operator(text, :end_with?, "last")
      assert_includes(1..2, waiting.value.size)
    end
  end

  # (Ruby 4.0 itself waits until nobody tries again.)
  def test_reopen
    heddle_only("threads are not woken by every reopen")
    return if RUBY_VERSION >= "4"

    reactor do
      reader, = pipe
      fresh, fresh_writer = pipe
      line = nil
      job = go { until_closed(reader) { line = reader.gets } }
      settle
      reader.reopen(fresh)
      fresh_writer.puts("fresh")

      assert_includes(1..2, job.value.size)
      assert_equal("fresh\n", line)
    end
  end

  # It is a socket by its class only.
  def test_a_socket_that_was_reopened_with_a_path
    reactor do
      one, other = socket_pair
      one.reopen(__FILE__)

      assert_equal("# frozen_string_literal: true\n", one.gets)
      assert_equal("\n", one.readpartial(1))
      assert_nil(other.read(1))
    end
  end

  def test_a_closer_that_is_cancelled_already_closes_first
    heddle_only("they have no tasks")
    reactor do
      one, other = socket_pair
      waiting = go { one.gets }
      settle
      closing = Heddle.spawn do
        Fiber.scheduler.interrupt(Fiber.current, Heddle::Cancelled.new("comes where the task waits next"))
        one.close
      end
      closing.wait

      assert_instance_of(IOError, waiting.failure)
      assert_predicate(closing, :cancelled?)
      assert_predicate(one, :closed?)
      assert_nil(other.read(1))
    end
  end
end
