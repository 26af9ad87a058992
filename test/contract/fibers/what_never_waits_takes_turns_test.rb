# frozen_string_literal: true

# bin/test: takes 12 s, 1 core

require_relative "../../test_helper"
require "tempfile"

# A task whose operations never have to wait leaves the others their turns, and finds everything as it would without.
contract "Turns" do
  heddle_only "threads are switched by time"

  def patience = 20
  def wanted = 5

  # The greedy task goes on until the other has had a number of turns, which need a look at the kernel each. It never
  # waits: nobody else writes, reads or connects.
  def greedy
    reactor do
      turns = 0
      other = go do
        while turns < wanted
          sleep(0.0001)
          turns += 1
        end
      end
      started = now
      count = 0
      while turns < wanted && now < started + patience
        yield(count)
        count += 1
      end

      assert_equal(wanted, turns, "after #{count} operations in a row")
      other.value
    end
  end

  %w[pipe tcp unix].each do |kind|
    {
      readpartial: [->(io) { io.write("x" * 64) }, ->(io) { io.readpartial(64) }],
      read: [->(io) { io.write("x" * 64) }, ->(io) { io.read(64) }],
      sysread: [->(io) { io.syswrite("x" * 64) }, ->(io) { io.sysread(64) }],
      gets: [->(io) { io.puts("x" * 63) }, ->(io) { io.gets }],
      readbyte: [->(io) { io.print("x") }, ->(io) { io.readbyte }],
      read_nonblock: [->(io) { io.write("x" * 64) }, ->(io) { io.read_nonblock(64) }]
    }.each do |name, (put, get)|
      next if name == :read_nonblock && kind == "pipe" # (it has the hook of a read, which lets nobody run for it)

      define_method("test_#{name}_on_#{kind}") do
        reader = writer = nil
        greedy do
          reader, writer = stream_pair(kind) unless reader
          put.call(writer)
          get.call(reader)
        end
      end
    end
  end

  # The bytes that are there are enough for thousands of reads.
  def greedy_pair
    reader = writer = nil
    greedy do |count|
      reader, writer = socket_pair unless reader
      writer.write_nonblock("x" * 4096) if (count % 4096).zero?
      yield(reader, writer)
    end
  end

  def test_readpartial = greedy_pair { |reader, _| reader.readpartial(1) }

  def test_recv = greedy_pair { |reader, _| reader.recv(1) }

  def test_select = greedy_pair { |reader, _| IO.select([reader]) && reader.recv(1) }

  def test_wait_readable_without_time = greedy_pair { |reader, _| reader.wait_readable(0) && reader.recv(1) }

  def test_writes
    reader = writer = nil
    greedy do
      reader, writer = socket_pair unless reader
      writer.write("x")
      reader.recv_nonblock(2)
    end
  end

  def test_send_and_receive_datagrams
    receiver = sender = nil
    greedy do
      unless receiver
        receiver = keep(UDPSocket.new)
        receiver.bind("127.0.0.1", 0)
        sender = keep(UDPSocket.new)
        sender.connect("127.0.0.1", receiver.addr[1])
      end
      sender.send("x", 0)

      assert_equal("x", receiver.recvfrom(1).first)
    end
  end

  def test_connections
    server = tcp_server
    greedy do
      client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      server.accept.close
      client.close
    end
  end

  def test_files
    Tempfile.create("heddle-turns") do |file|
      file.write("line\n" * 1000)
      file.flush
      greedy { File.read(file.path) }
      greedy { File.foreach(file.path) { |line| line } }
      greedy { file.pread(10, 0) }
      greedy { File.stat(file.path) }
      greedy { file.write("x") && file.flush && file.truncate(10) && file.rewind }
    end
  end

  def test_tls
    reader = writer = nil
    greedy do
      reader, writer = ssl_pair unless reader
      writer.write("x\n")

      assert_equal("x\n", reader.gets)
    end
  end

  def test_tls_that_does_not_wait
    reader = writer = nil
    greedy do
      reader, writer = ssl_pair unless reader
      writer.write_nonblock("x")

      assert_includes(["x", :wait_readable], reader.read_nonblock(1, exception: false))
    end
  end

  # They go on at once, as if they were one fiber.
  def test_tasks_that_have_ended
    run do
      turns = 0
      Heddle.spawn { sleep(0.0001) && turns += 1 while turns < wanted }
      ended = Heddle.spawn { :ended }
      started = now
      ended.value while turns < wanted && now < started + patience

      assert_equal(wanted, turns)
    end
  end

  def test_tasks_that_end_at_once
    run do
      turns = 0
      Heddle.spawn { sleep(0.0001) && turns += 1 while turns < wanted }
      started = now
      Heddle.spawn { nil }.value while turns < wanted && now < started + patience

      assert_equal(wanted, turns)
    end
  end

  # A long read has turns in its midst; what it has read by then is not lost, and nothing comes out of order.
  def test_a_long_read_is_whole
    reactor do
      reader, writer = socket_pair
      data = Random.bytes(4 << 20)
      turns = 0
      running = true
      ticker = go { sleep(0.0001) && turns += 1 while running }
      go { writer.write(data) }

      assert_equal(data, reader.read(data.bytesize))
      running = false
      ticker.value
    end
  end

  # Two greedy ones read different streams; each sees its own in order.
  def test_streams_stay_in_order
    reactor do
      jobs = Array.new(3) do |number|
        reader, writer = socket_pair
        go do
          5_000.times do |i|
            writer.puts("#{number} #{i}")

            assert_equal("#{number} #{i}\n", reader.gets)
          end
        end
      end
      jobs.each(&:value)
    end
  end

  # Those with nothing to wait for have equal turns, however many they are.
  def test_equal_shares
    [3, 40].each do |count|
      rounds = Array.new(count, 0)
      reactor do
        running = true
        jobs = Array.new(count) do |i|
          go do
            reader, writer = socket_pair
            while running
              writer.write("x") && reader.readpartial(1)
              rounds[i] += 1 if @last != i # it has its turn, for another one had it before
              @last = i
            end
          end
        end
        sleep(0.01) until rounds.min >= 1
        before = rounds.dup # all have been started
        sleep(0.01) until rounds.min >= before.max + 10
        rounds = rounds.zip(before).map { |later, earlier| later - earlier }
        running = false
        jobs.each(&:value)
      end

      assert_operator(rounds.max, :<=, 1.5 * rounds.min, rounds.inspect)
    end
  end

  # What an event has woken runs first; those whose turn is used up come in their order.
  def test_events_first
    ENV["HEDDLE_CALLS"] = "direct" # where calls are dear, these tasks would wait; teardown takes it back
    reactor do
      running = true
      order = []
      3.times do |i|
        go do
          reader, writer = socket_pair
          writer.write("x") && reader.readpartial(1) && order.last != i && order.push(i) while running
        end
      end
      event = go { 10.times { sleep(0.005) && order.push(:event) } }
      event.value
      running = false
      between = order.slice_when { |_, later| later == :event }.drop(1).map { |part| part.drop(1) }

      assert_operator(between.map(&:size).max, :>, 0)
      between.each { |part| assert_equal(part.each_cons(2).map { |a, _| (a + 1) % 3 }, part.drop(1)) }
    end
  end

  # A cancel, and the end of a timeout, are raised in a task that never waits. Nothing is lost: what was written was
  # read, or is still there.
  def test_a_cancel_strikes
    run do
      reader, writer = socket_pair
      written = read = 0
      greedy = Heddle.spawn do
        loop do
          written += writer.write("x")
          read += reader.readpartial(1).bytesize
        end
      end
      sleep(0.001) until read > 10
      greedy.cancel

      assert_predicate(greedy.wait, :cancelled?)
      left = reader.read_nonblock(2, exception: false)
      left = "" if left == :wait_readable

      assert_equal(written, read + left.bytesize)
    end
  end

  def test_a_timeout_strikes
    reactor do
      reader, writer = socket_pair
      read = 0
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.02) { loop { writer.write("x") && reader.readpartial(1) && read += 1 } }
      end

      assert_operator(read, :>, 0)
    end
  end

  # It may be closed meanwhile.
  def test_a_close_strikes
    needs_whole_turns
    reactor do
      reader, writer = socket_pair
      job = go { loop { writer.write("x") && reader.readpartial(1) } }
      sleep(0.002)
      reader.close

      assert_instance_of(IOError, job.failure)
    end
  end

  # As a server does that accepts connections, each of which computes at once and then again and again. What they
  # compute does not count for the task that starts them. Otherwise it would go behind them all after each start.
  def test_one_who_starts_tasks_that_compute
    count = 30
    rounds = Array.new(count, 0)
    when_all_had_begun = nil
    reactor do
      reader, writer = stream_pair("unix")
      writer.write("x" * count * 20)
      count.times do |i|
        20.times { reader.readpartial(1) }
        go do
          until when_all_had_begun
            rounds[i] += 1
            compute(0.001)
            sleep(0.0001)
          end
        end
      end
      when_all_had_begun = rounds.dup
    end

    assert_operator(when_all_had_begun.max, :<=, count / 2, when_all_had_begun.inspect)
  end

  def compute(seconds)
    ends = now + seconds
    nil while now < ends
  end
end
