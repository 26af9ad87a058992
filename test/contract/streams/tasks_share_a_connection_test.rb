# frozen_string_literal: true

require "stringio"

require_relative "../../test_helper"
require "delegate"
require "support/certificate"
require "support/io/shared_io"

# Two tasks that read from one connection: Heddle warns, for one may get the answer of the other.
contract "SharedConnection", both_ways: true do
  include TestSupport::SharedIO

  heddle_only "it is about tasks"

  # Tasks that read from the IO, in this way; then each is given a line.
  def read_in_tasks(reader, writer, count = 2, &read)
    results = nil
    Heddle.run(backend: backend) do
      tasks = Array.new(count) do |number|
        Heddle.spawn(name: "reader #{number}", isolated: true) { (read || :gets.to_proc).call(reader) }
          .tap { settle } # it waits before the next one begins, also with time slices
      end
      writer.write("x\n" * count)
      settle
      tasks.each { |task| task.wait(0.5) || task.cancel.wait }
      results = tasks.map { |task| task.error || task.value }
    end
    results
  end

  # How tasks read: through the hooks io_read, io_wait and io_select.
  reads = {
    "gets" => :gets.to_proc,
    "readpartial" => ->(io) { io.readpartial(2) },
    "sysread" => ->(io) { io.sysread(2) },
    "recv" => ->(io) { io.recv(2) },
    "recvmsg" => ->(io) { io.recvmsg(2).first },
    "read_nonblock" => lambda do |io|
      io.read_nonblock(2)
    rescue IO::WaitReadable
      io.wait_readable && retry
    end,
    "wait" => ->(io) { io.wait(IO::READABLE, 5) && io.sysread(2) },
    "select" => ->(io) { IO.select([io], nil, nil, 5) && io.sysread(2) }
  }
  reads.each do |name, read|
    define_method("test_#{name}") do
      said = said_with(:warn) { assert_equal(%W[x\n x\n], read_in_tasks(*socket_pair, &read)) }

      assert_equal(1, reports(said), said)
      results = nil
      said = said_with(:raise) { silently { results = read_in_tasks(*socket_pair, &read) } }

      assert_equal("x\n", results.first)
      assert_instance_of(Heddle::SharedIOError, results.last)
      assert_empty(said)
      assert_empty(said_with(:ignore) { assert_equal(%W[x\n x\n], read_in_tasks(*socket_pair, &read)) })
    end
  end

  def test_says_who_and_where_and_what_helps
    said = said_with(:warn) { read_in_tasks(*socket_pair) }

    assert_match(/\Aheddle: task "reader 1" reads from UNIXSocket unnamed -> unnamed \(descriptor \d+\), /, said)
    assert_match(/, where task "reader 0" waits for data already: /, said)
    assert_match(/^task "reader 0" waits here:\n {6}\S+_test.rb:\d+:in /, said)
    assert_match(/^task "reader 1" reads here:\n {6}\S+_test.rb:\d+:in /, said)
    assert_match(/^What helps: give each task a connection of its own, .*Heddle.share_io/, said)
    refute_match(%r{lib/heddle|Heddle::Scheduler}, said)
  end

  def test_the_error_says_so_too
    results = nil
    said_with(:raise) { silently { results = read_in_tasks(*socket_pair) } }
    message = results.last.message

    assert_match(/\Atask "reader 1" reads from .*^task "reader 0" waits here:\n {6}\S+_test.rb.*^What helps:/m, message)
    assert_kind_of(Heddle::Error, results.last)
  end

  # The caller is a line of the program: a warning about a line of a library is given for each line of the program that
  # calls it.
  def test_once_for_each_line
    said = said_with(:warn) do
      3.times { read_in_tasks(*socket_pair, 4) }
      read_in_tasks(*socket_pair) { |io| io.gets }
    end

    assert_equal(2, reports(said), said)
  end

  def test_tcp_and_tls
    needs_whole_turns
    %i[tcp_pair tls_pair].each do |pair|
      said = said_with(:raise) do
        silently do
          Heddle.run(backend: backend) do
            client, server = send(pair)
            first = Heddle.spawn { client.gets }
            second = Heddle.spawn(isolated: true) { client.gets }
            second.wait
            server.puts("for the first")

            assert_instance_of(Heddle::SharedIOError, second.error)
            assert_equal("for the first\n", first.value)
          end
        end
      end

      assert_empty(said)
    end
  end

  # It would not wait, and take the answer of the task that waits.
  def test_the_answer_is_there_already
    said = said_with(:raise) do
      silently do
        Heddle.run(backend: backend) do
          first, second = two_readers_of_one_answer

          assert_equal("for the first\n", first.value)
          assert_instance_of(Heddle::SharedIOError, second.wait.error)
        end
      end
    end

    assert_empty(said)
  end

  # The second one begins while the first one waits. On a busy machine the first may have had its turn by then.
  def two_readers_of_one_answer
    20.times do
      one, other = socket_pair
      first = Heddle.spawn { one.gets }
      other.puts("for the first")
      second = Heddle.spawn(isolated: true) { one.gets }
      return first, second if second.finished?

      other.close
      second.wait
    end

    flunk("the second reader waited each time")
  end

  def test_a_task_of_another_thread
    one, other = socket_pair
    error = nil
    said_with(:raise) do
      silently do
        thread = Thread.new { Heddle.run(backend: backend) { one.gets } }
        sleep(0.001) until thread.stop?
        sleep(0.05)
        error = assert_raises(Heddle::SharedIOError) { Heddle.run(backend: backend) { one.gets } }
        other.puts("x")
        thread.join
      end
    end

    assert_match(/task "main" waits here/, error.message)
  end

  def test_a_command_with_two_pipes
    said = said_with(:warn) do
      Heddle.run(backend: backend) do
        cat = keep(IO.popen("cat", "r+"))
        tasks = Array.new(2) { Heddle.spawn { cat.gets } }
        settle
        cat.puts("1", "2")

        assert_equal(%W[1\n 2\n], tasks.map(&:value).sort)
        cat.close
      end
    end

    assert_equal(1, reports(said), said)
  end

  # The second one reads ahead the bytes that are meant for both, and the kernel reports nothing more to the first.
  def test_what_one_reads_ahead_is_for_the_others
    %i[socket_pair pipe_and_back].each do |streams|
      lines = nil
      said_with(:ignore) do
        Heddle.run(backend: backend) do
          one, other = send(streams)
          first = Array.new(2) { Heddle.spawn { one.gets } }
          other.write("1\n2\n3\n")
          second = Heddle.spawn { one.gets }
          lines = [*first, second].map { |task| task.wait(20) && task.value }
          first.each(&:cancel)
        end
      end

      assert_equal(%W[1\n 2\n 3\n], lines.compact.sort, streams)
    end
  end

  # Ruby's own path: the IO for writing is tied to the IO for reading.
  def pipe_and_back
    cat = keep(IO.popen("cat", "r+"))
    answers = Class.new(SimpleDelegator) do
      def write(text)
        super.tap { sleep(0.01) until IO.select([__getobj__], nil, nil, 0) }
      end
    end
    [cat, answers.new(cat)]
  end

  # -- what is right -----------------------------------------------------------------------------------------------

  def assert_silent(&block)
    said = %i[warn raise].map { |mode| said_with(mode) { Heddle.run(backend: backend, &block) } }

    assert_equal(["", ""], said)
  end

  def test_one_reads_and_others_write
    assert_silent do
      one, other = socket_pair
      answer = Heddle.spawn { one.gets }
      settle
      2.times { Heddle.spawn { one.puts("x" * 300_000) } }
      2.times { other.gets }
      other.puts("done")

      assert_equal("done\n", answer.value)
    end
  end

  # They take turns: no answer is asked for before the one before has come.
  def test_a_lock_around_question_and_answer
    assert_silent do
      one, other = socket_pair
      lock = Mutex.new
      Heddle.spawn(background: true) { loop { other.write(other.gets) } }
      answers = Heddle.map(1..20) { |n| lock.synchronize { one.puts(n) || one.gets.to_i } }

      assert_equal([*1..20], answers)
    end
  end

  # What several tasks may wait for: its readers are alike.
  def test_pipes_servers_and_datagrams
    assert_silent do
      reader, writer = pipe
      server = keep(TCPServer.new("127.0.0.1", 0))
      udp = keep(UDPSocket.new)
      udp.bind("127.0.0.1", 0)
      two, packets = UNIXSocket.pair(:SEQPACKET).each { |io| keep(io) }
      waits = [-> { reader.gets }, -> { server.accept.close }, -> { udp.recv(9) }, -> { two.recv(9) }]
      tasks = waits.flat_map { |wait| Array.new(2) { Heddle.spawn { wait.call } } }
      settle
      writer.puts("1", "2")
      2.times { keep(TCPSocket.new("127.0.0.1", server.addr[1])) }
      2.times { UDPSocket.open { |socket| socket.send("x", 0, "127.0.0.1", udp.addr[1]) } }
      2.times { packets.send("x", 0) }
      tasks.each(&:value)
    end
  end

  def test_those_that_say_so
    assert_silent do
      one, other = socket_pair

      assert_same(one, Heddle.share_io(one))
      tasks = Array.new(3) { Heddle.spawn { one.gets } }
      settle
      other.puts("1", "2", "3")
      tasks.each(&:value)
    end
  end

  # The one before has gone, by a cancel or a timeout.
  def test_one_after_the_other
    assert_silent do
      one, other = socket_pair
      first = Heddle.spawn { one.gets }
      settle
      first.cancel
      second = Heddle.spawn { Heddle.timeout(0.01) { one.gets } rescue one.gets } # rubocop:disable Style/RescueModifier
      sleep(0.05)
      other.puts("x")

      assert_equal("x\n", second.value)
      first.wait
    end
  end

  # It is one task, with fibers of its own.
  def test_a_fiber_that_the_task_has_resumed
    assert_silent do
      one, other = socket_pair
      lines = Enumerator.new { |yielder| loop { yielder << one.gets } }
      Heddle.spawn { 2.times { (sleep 0.01) && other.puts("x") } }

      assert_equal("x\n", lines.next)
      assert_equal("x\n", one.gets)
    end
  end

  # Is the connection still there? It takes nothing.
  def test_a_look_without_a_wait
    assert_silent do
      one, other = socket_pair
      waiting = Heddle.spawn { one.gets }
      settle

      refute(IO.select([one], nil, nil, 0))
      refute(one.wait_readable(0))
      other.puts("x")
      waiting.value
    end
  end

  def test_two_tasks_that_wait_for_room
    assert_silent do
      one, other = socket_pair
      one.write_nonblock("x" * 9000, exception: false) until one.wait_writable(0).nil?
      tasks = Array.new(2) { Heddle.spawn { one.wait_writable } }
      settle
      keep(other).close
      tasks.each(&:value)
    end
  end

  # The report itself waits, and meanwhile another task closes the IO.
  def test_a_close_meanwhile
    one, = socket_pair
    slow = StringIO.new
    slow.define_singleton_method(:write) { |*| sleep 0.05 }
    errors = nil
    said_with(:warn) do
      $stderr = slow
      errors = Heddle.run(backend: backend) do
        tasks = Array.new(2) { Heddle.spawn(isolated: true) { one.gets } }
        settle
        one.close
        tasks.map { |task| task.wait.error }
      end
    end

    assert_equal([IOError, IOError], errors.map(&:class))
  end

  def test_bad_input
    error = assert_raises(ArgumentError) { Heddle.shared_io = :print }

    assert_equal("shared_io: must be :warn, :raise or :ignore, not :print", error.message)
    assert_equal(:warn, Heddle.shared_io)
    error = assert_raises(ArgumentError) { Heddle.share_io("pipe") }

    assert_equal('io: must be an IO, not "pipe"', error.message)
  end

  private

  def tcp_pair
    server = keep(TCPServer.new("127.0.0.1", 0))
    client = keep(TCPSocket.new("127.0.0.1", server.addr[1]))
    [client, keep(server.accept)]
  end

  def tls_pair
    client, server = tcp_pair
    server = OpenSSL::SSL::SSLSocket.new(server, TestSupport::Certificate.server_context)
    accepted = Heddle.spawn { server.accept }
    client = OpenSSL::SSL::SSLSocket.new(client, TestSupport::Certificate.client_context).connect
    accepted.value
    [client, server]
  end
end
