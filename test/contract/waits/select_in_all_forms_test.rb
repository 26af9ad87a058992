# frozen_string_literal: true

require_relative "../../test_helper"

# IO.select with all its forms of arguments.
contract "Select" do
  # Hazard: IO.select with one argument was an ArgumentError.
  on_streams "select with one array waits", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { IO.select([reader]) }
    settle

    refute_predicate(job, :finished?)
    writer.write("x")

    assert_equal([[reader], [], []], job.value)
  end

  on_streams "select with two arrays", TestSupport::Streams::PLAIN do |reader, writer|
    assert_equal([[], [writer], []], IO.select([reader], [writer]))
    writer.write("x")
    reader.wait_readable

    assert_equal([[reader], [writer], []], IO.select([reader], [writer]))
  end

  # The kernel refuses to look at more descriptors at once than a process may have.
  def test_more_entries_than_descriptors
    limits = Process.getrlimit(:NOFILE)
    reactor do
      reader, writer = pipe
      Process.setrlimit(:NOFILE, writer.fileno + 30, limits.last)
      readers = [reader] * 3 * (writer.fileno + 30)
      job = go { IO.select(readers, [writer] * 50, nil, 20) }

      assert_equal([[], [writer] * 50, []], job.value)
      job = go { IO.select(readers, nil, nil, 20) }
      settle
      writer.write("x")

      assert_equal([readers, [], []], job.value)
    end
  ensure
    Process.setrlimit(:NOFILE, *limits)
  end

  on_streams "select with a timeout returns nil", TestSupport::Streams::PLAIN do |reader, _writer|
    result = :none
    taken = elapsed { result = IO.select([reader], nil, nil, 0.05) }

    assert_nil(result)
    assert_operator(taken, :>=, 0.05)
    assert_nil(IO.select([reader], [], [], 0))
    assert_nil(IO.select([reader], nil, nil, 0.0))
  end

  on_streams "select returns before its timeout", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { IO.select([reader], nil, nil, 20) }
    settle
    writer.write("x")

    assert_equal([[reader], [], []], job.value)
  end

  on_streams "select sees buffered data", TestSupport::Streams::PLAIN do |reader, writer|
    writer.write("line\nrest")
    reader.gets

    assert_equal([[reader], [], []], IO.select([reader]))
    assert_equal([[reader], [], []], IO.select([reader], nil, nil, 0))
  end

  on_streams "select sees the end", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { IO.select([reader], nil, nil, 20) }
    settle
    writer.close

    assert_equal([[reader], [], []], job.value)
  end

  on_streams "select waits for room", TestSupport::Streams::PLAIN do |reader, writer|
    filled = fill(writer)

    assert_nil(IO.select(nil, [writer], nil, 0.02))
    job = go { IO.select(nil, [writer]) }
    settle
    drain(reader, filled)

    assert_equal([[], [writer], []], job.value)
  end

  def test_select_without_descriptors_sleeps
    reactor do
      assert_nil(IO.select(nil, nil, nil, 0.01))
      assert_nil(IO.select([], [], [], 0.01))
      assert_others_run { IO.select(nil, nil, nil, 0.15) }
    end
  end

  def test_select_returns_the_objects_it_was_given
    reactor do
      reader, writer = pipe
      wrapper = Struct.new(:to_io).new(reader)
      job = go { IO.select([wrapper], nil, nil, 20) }
      settle
      writer.write("x")

      assert_equal([[wrapper], [], []], job.value)
      assert_same(wrapper, job.value[0][0])
    end
  end

  def test_select_on_ssl_sockets
    reactor do
      reader, writer = ssl_pair
      job = go { IO.select([reader], [writer], nil, 20) }

      assert_equal([writer], job.value[1])
    end
  end

  def test_the_same_io_in_two_arrays
    reactor do
      one, other = socket_pair
      filled = fill(one)
      job = go { IO.select([one], [one], nil, 20) }
      settle

      refute_predicate(job, :finished?)
      drain(other, filled)

      assert_equal([[], [one], []], job.value)
      other.write("x")
      one.wait_readable

      assert_equal([[one], [one], []], IO.select([one], [one]))
    end
  end

  def test_the_same_io_twice_in_one_array
    reactor do
      reader, writer = pipe
      writer.write("x")
      ready, = IO.select([reader, reader], nil, nil, 5)

      assert_equal([reader], ready.uniq)
    end
  end

  def test_urgent_data_in_the_third_array
    reactor do
      reader, writer = tcp_pair
      job = go { IO.select(nil, nil, [reader], 20) }
      sleep(0.02) # the wait has to be in the kernel: io_uring leaves POLLPRI out of a wake

      refute_predicate(job, :finished?)
      writer.send("!", Socket::MSG_OOB)

      assert_equal([[], [], [reader]], job.value)
    end
  end

  def test_plain_data_is_not_urgent
    reactor do
      reader, writer = tcp_pair
      job = go { IO.select(nil, nil, [reader], 20) }
      sleep(0.02)
      writer.write("x")
      sleep(0.02)

      refute_predicate(job, :finished?)
      writer.send("!", Socket::MSG_OOB)

      assert_equal([[], [], [reader]], job.value)
    end
  end

  def test_many_pipes_of_which_some_are_ready
    reactor do
      pipes = Array.new(200) { pipe }
      job = go { IO.select(pipes.map(&:first), nil, nil, 20) }
      settle
      ready = [pipes[17], pipes[150]]
      ready.each { |_, writer| writer.write("x") }
      seen = job.value[0]

      refute_empty(seen)
      assert_empty(seen - ready.map(&:first))
      assert_equal(ready.map(&:first), IO.select(pipes.map(&:first), nil, nil, 20)[0])
    end
  end

  def test_several_selects_on_the_same_pipe
    reactor do
      reader, writer = pipe
      jobs = Array.new(5) { go { IO.select([reader], nil, nil, 20) } }
      settle
      writer.write("x")

      jobs.each { |job| assert_equal([[reader], [], []], job.value) }
    end
  end

  def test_a_select_and_a_reader_on_the_same_socket
    reactor do
      one, other = socket_pair
      selecting = go { IO.select([one], nil, nil, 20) }
      reading = go { one.readpartial(1) }
      settle
      other.write("xy")

      assert_equal("x", reading.value)
      assert_equal([[one], [], []], selecting.value)
    end
  end

  on_streams "infinity is no timeout from Ruby 4.0 on", ["pipe"] do |reader, writer|
    writer.write("x")
    writer.flush
    select = -> { IO.select([reader], nil, nil, Float::INFINITY) }
    RUBY_VERSION < "4.0" ? assert_raises(RangeError, &select) : assert_equal([[reader], [], []], select.call)
  end

  # Without a timeout, nil is no answer.
  def test_a_reader_takes_what_a_select_has_seen
    reactor do
      one, other = socket_pair
      reading = go { one.readpartial(10) }
      selecting = go { IO.select([one]) }
      settle
      other.write("x")
      reading.value
      settle
      other.write("y")

      assert_equal([[one], [], []], selecting.value)
    end
  end

  def test_select_in_turn_leaves_nothing_registered
    reactor do
      reader, writer = pipe
      other, _keep_open = pipe

      20.times do
        assert_nil(IO.select([reader, other], nil, nil, 0.001))
      end
      writer.write("x")

      assert_equal("x", reader.readpartial(5))
      assert_nil(reader.wait_readable(0))
    end
  end

  def test_select_of_a_high_descriptor
    need_descriptors(2500)
    reactor do
      files = Array.new(1100) { keep(File.open(File::NULL)) }
      reader, writer = pipe

      assert_operator(reader.fileno, :>, 1024)
      job = go { IO.select([reader], nil, nil, 20) }
      settle
      writer.write("x")

      assert_equal([[reader], [], []], job.value)
      assert_equal(1100, files.size)
    end
  end

  def test_regular_files_are_always_ready
    reactor do
      file = keep(File.open(__FILE__))

      assert_equal([[file], [], []], IO.select([file], nil, nil, 5))
    end
  end

  def test_wrong_arguments
    reactor do
      reader, = pipe

      assert_raises(TypeError) { IO.select([1], nil, nil, 0) }
      assert_raises(TypeError) { IO.select(reader, nil, nil, 0) }
      assert_raises(TypeError) { IO.select([reader], nil, nil, "x") }
      assert_raises(ArgumentError) { IO.select([reader], nil, nil, -1) }
      assert_raises(RangeError) { IO.select([reader], nil, nil, 1e30) }
      assert_raises(ArgumentError) { IO.select }
      reader.close

      assert_raises(IOError) { IO.select([reader], nil, nil, 0) }
    end
  end

  # The pipe has room for a moment. When the task that was woken for it looks, it is full again, and about to be closed.
  def test_an_io_is_closed_that_was_ready_for_a_moment
    heddle_only("on threads a select of an IO that is closed waits on")
    reactor do
      reader, writer = pipe
      fill(writer)
      job = go { IO.select(nil, [writer], nil, 20) }
      settle
      reader.readpartial(65_536)
      sleep(0) until Heddle.stats.tasks[:ready] == 1
      fill(writer)
      writer.close

      assert_instance_of(IOError, job.failure)
    end
  end

  def test_others_run_while_one_selects
    reactor do
      reader, writer = pipe
      assert_others_run do
        go { others_have_run && writer.write("x") }
        IO.select([reader])
      end
    end
  end
end
