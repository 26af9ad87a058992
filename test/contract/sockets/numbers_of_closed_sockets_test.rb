# frozen_string_literal: true

# bin/test: takes 5 s, 0.4 of a core

require_relative "../../test_helper"

# A request that has been prepared, and has not been given to the kernel when its socket is closed, does not go to the
# socket that has the number next.
contract "NumbersOfClosedSockets", both_ways: true do
  heddle_only "its threads start too late for this"

  # A task that reads once more, and waits for that. It has waited before, so it does so at once.
  # @return [Array(Job, Boolean)] the task, and whether the loop has not looked at the kernel since
  def prepare_read(io, peer)
    again = Thread::Queue.new
    job = go do
      io.readpartial(100)
      again.pop
      yield
    end
    await_reader
    sleep 0.001
    peer.write("first")
    sleep 0 until again.num_waiting == 1
    again << true
    polls = await_reader
    [job, Heddle.stats.polls == polls]
  end

  # @return [Integer] the looks at the kernel before the task's last turn
  def await_reader
    polls = nil
    (polls = Heddle.stats.polls) && sleep(0) until Heddle.stats.tasks[:io] == 1
    polls
  end

  # The socket that has the number, with its peer.
  def pair_with_number(number)
    one, other = socket_pair
    skip("libkqueue has closed a descriptor of its own meanwhile") if libkqueue? && one.fileno < number - 1
    pair = one.fileno == number ? [one, other] : [other, one]

    assert_equal(number, pair.first.fileno)
    pair
  end

  reads = { "readpartial" => ->(io) { io.readpartial(100) }, "gets" => ->(io) { io.gets },
            "read" => ->(io) { io.read(3) }, "recv" => ->(io) { io.recv(100) } }

  reads.each do |name, read|
    define_method("test_#{name}_of_a_socket_whose_twin_is_closed") do
      reactor { assert_twin_fails(&read) }
    end

    define_method("test_#{name}_while_others_run_before_it_hears_of_the_close") do
      reactor { assert_twin_fails(others: 100, &read) }
    end
  end

  # The read fails, whether the kernel has the request or not. It has it if this thread was held up, so this is done
  # until it has not.
  def assert_twin_fails(**others, &read)
    wait_until("a request that the kernel does not have") { close_twin(**others, &read) }
  end

  # @param others [Integer] tasks that run first: meanwhile the kernel is given what has been prepared
  # @return [Boolean] whether the kernel did not have the request
  def close_twin(others: 0)
    reader, peer = socket_pair
    reader.autoclose = false
    job, prepared = prepare_read(reader, peer) { yield reader }
    number = reader.fileno
    UNIXSocket.for_fd(number).close
    fresh, fresh_peer = pair_with_number(number)
    fresh_peer.write("fresh\n")
    others.times { go { nil } }

    assert_instance_of(Errno::EBADF, job.failure)
    assert_equal("fresh\n", fresh.readpartial(100))
    prepared
  end

  # A task that leaves the socket lets another one begin to read from its twin, while the close still waits.
  def test_a_twin_that_begins_during_the_close
    reactor do
      reader, = socket_pair
      twin = keep(UNIXSocket.for_fd(reader.fileno)).tap { |one| one.autoclose = false }
      late = Thread::Queue.new
      leaving = go do
        reader.readpartial(1)
      rescue IOError
        late << go { twin.readpartial(1) }
      end
      settle
      reader.close

      assert_nil(leaving.failure)
      assert_includes([Errno::EBADF, IOError], late.pop.failure.class)
    end
  end

  # With which a write in the ring is made: Ruby makes it when it writes by itself.
  def make_lock(writer, peer)
    writer.write(1)
    peer.readpartial(100)
  end

  def test_a_write_to_a_socket_whose_twin_is_closed
    reactor do
      writer, peer = socket_pair
      writer.autoclose = false
      make_lock(writer, peer)
      start = Thread::Queue.new
      busy = Array.new(12) { go { start.pop && 6.times { sleep 0 } } }
      job = go { start.pop && writer.write("private") }
      settle
      13.times { start << true }
      sleep 0
      number = writer.fileno
      UNIXSocket.for_fd(number).close
      _, fresh_peer = pair_with_number(number)
      [job, *busy].each { |task| task.failure || task.value }

      assert_equal(:wait_readable, fresh_peer.read_nonblock(100, exception: false))
    end
  end

  # The close waits for about a second until the reader has left, and goes on without it.
  reads.slice("readpartial", "gets").each do |name, read|
    define_method("test_#{name}_of_a_socket_that_another_thread_closes_while_this_one_is_held_up") do
      reactor do
        reader, peer = socket_pair
        job, = prepare_read(reader, peer) { read.call(reader) }
        number = reader.fileno
        closer = Thread.new do
          reader.close
          pair_with_number(number).tap { |_, fresh_peer| fresh_peer.write("fresh\n") }
        end
        Heddle.blocking { closer.join }

        assert_instance_of(IOError, job.failure)
        assert_equal("fresh\n", closer.value.first.readpartial(100))
      end
    end
  end

  # The number of pieces of 4,000 bytes that fit. After them, a part of one more fits, if the kernel has its usual
  # buffers.
  def fill(socket)
    (0..).find { socket.write_nonblock("x" * 4000, exception: false) != 4000 }
  end

  def tcp_pair
    server = TCPServer.new("127.0.0.1", 0)
    one = keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
    other = keep(server.accept)
    make_lock(one, other)
    [one, other]
  ensure
    server&.close
  end

  # The part has been sent, but the writer has not heard of it yet: it is not to wait for the number then.
  def test_a_write_of_which_a_part_is_sent_when_its_socket_is_closed
    reactor do
      reader, = pipe # (it is never writable)
      pieces = fill(tcp_pair.first)
      failures = Array.new(8) { |turns| failure_of_write_in_part(pieces, turns, reader) }

      assert(failures.compact.all?(IOError)) # (nil: the socket has taken it all)
    end
  end

  def failure_of_write_in_part(pieces, turns, reader)
    writer, = tcp_pair
    pieces.times { writer.write_nonblock("x" * 4000, exception: false) }
    busy = Array.new(12) { go { 30.times { sleep 0 } } }
    job = go { write_with_others(writer) }
    turns.times { sleep 0 }
    writer.close
    taken = Array.new(8) { reader.dup }
    failure = Heddle.timeout(5) { job.failure }
    [*taken, writer].each(&:close)
    busy.each(&:value)
    failure
  end

  # The first write after a look at the kernel is made directly.
  def write_with_others(writer)
    other, = socket_pair
    sleep 0
    other.write("first")
    writer.write("y" * 4000)
  end
end
