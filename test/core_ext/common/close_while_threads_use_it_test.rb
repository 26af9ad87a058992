# frozen_string_literal: true

require_relative "../../test_helper"
require "io/nonblock"

# A fiber closes an IO that threads are in a system call with: they get their IOError, and the closer goes on, whatever
# the threads do afterwards.
contract "CloseWhileThreadsUseIt" do
  # Of a descriptor that blocks: a thread that reads from it is in read(2) all the time.
  def blocking_pipe
    pipe.tap { |reader,| reader.nonblock = false }
  end

  # The outcome of `read` in a thread that goes on until it is asked to end.
  def thread_that(outcomes, &read)
    thread = Thread.new do
      outcomes.push(read.call)
    rescue IOError => e
      outcomes.push(e.class)
    ensure
      sleep
    end
    Thread.pass until thread.stop?
    sleep(0.01)
    (@users ||= []) << thread
    thread
  end

  # Ends the read(2) of the threads that are still in it.
  def leave(writer)
    writer.write("x")
  rescue Errno::EPIPE
    nil
  end

  def teardown
    @users&.each { |thread| thread.kill.join }
    super
  end

  [1, 3].each do |count|
    define_method("test_#{count}_blocked_in_it") do
      reactor do
        reader, = blocking_pipe
        outcomes = Thread::Queue.new
        count.times { thread_that(outcomes) { reader.readpartial(1) } }
        closing = go { reader.close }

        assert_equal([IOError] * count, Array.new(count) { outcomes.pop(timeout: 60) })
        assert_nil(closing.value)
        assert_predicate(reader, :closed?)
      end
    end
  end

  def test_one_that_runs_a_scheduler_itself
    heddle_only("two schedulers")
    name = backend
    reactor do
      reader, = blocking_pipe
      outcomes = Thread::Queue.new
      thread_that(outcomes) { Heddle.run(backend: name) { Fiber.blocking { reader.readpartial(1) } } }
      reader.close

      assert_equal(IOError, outcomes.pop(timeout: 60))
    end
  end

  # The signal ends its read(2) or not: then it has to leave by itself.
  def test_one_that_puts_the_error_off
    reactor do
      reader, writer = blocking_pipe
      outcomes = Thread::Queue.new
      thread_that(outcomes) { Thread.handle_interrupt(IOError => :never) { reader.sysread(1) } }
      closing = go { reader.close }
      settle
      leave(writer)

      assert_includes(["x", IOError], outcomes.pop(timeout: 60))
      assert_nil(closing.value)
    end
  end

  def test_the_closer_is_cancelled_meanwhile
    heddle_only("tasks")
    reactor do
      reader, writer = blocking_pipe
      outcomes = Thread::Queue.new
      thread_that(outcomes) { Thread.handle_interrupt(IOError => :never) { reader.sysread(1) } }
      closing = Heddle.spawn do
        reader.close
        sleep
      end
      sleep(0) # closing has begun
      closing.cancel
      settle
      leave(writer)
      closing.wait

      assert_includes(["x", IOError], outcomes.pop(timeout: 60))
      assert_predicate(closing, :cancelled?)
      assert_predicate(reader, :closed?)
    end
  end

  # The usual end of a server, whose loop takes the IOError for the error of one connection.
  def test_a_server_in_a_thread_is_killed_and_closed
    heddle_only("two schedulers")
    name = backend
    reactor do
      20.times do |i|
        server = tcp_server
        thread = Thread.new do
          Heddle.run(backend: name) do
            loop do
              server.accept.close
            rescue StandardError
              nil
            end
          end
        end
        sleep(0.002 * (i % 3)) until thread.stop?
        thread.kill
        server.close

        assert_same(thread, thread.join(60))
      end
    end
  end
end
