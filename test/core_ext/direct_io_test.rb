# frozen_string_literal: true

# bin/test: takes 4 s, 0.7 of a core

require_relative "../test_helper"
require "support/plain_ruby"

# The methods that go to the system call at once do what Ruby's own do, and wait in between.
contract "DirectIO", both_ways: true do
  include TestSupport::PlainRuby

  # Each is given what was written before: "line\nmore\nand the rest".
  reads = {
    "readpartial" => ->(io) { io.readpartial(7) },
    "all_of_it" => ->(io) { io.readpartial(100_000) },
    "into_a_string" => ->(io) { [io.readpartial(6, s = +"äb"), s] },
    "into_a_longer_string" => ->(io) { [io.readpartial(3, s = "x" * 50), s] },
    "into_a_shared_string" => ->(io) { [io.readpartial(9, s = (t = "y" * 50).dup), s, t] },
    "into_a_frozen_string" => ->(io) { io.readpartial(3, "") },
    "into_no_string" => ->(io) { io.readpartial(3, :x) },
    "nothing" => ->(io) { io.readpartial(0) },
    "less_than_nothing" => ->(io) { io.readpartial(-1) },
    "by_no_number" => ->(io) { io.readpartial("3") },
    "a_rounded_number" => ->(io) { io.readpartial(3.9) },
    "no_number" => ->(io) { io.readpartial },
    "after_gets" => ->(io) { [io.gets, io.readpartial(3), io.readpartial(100)] },
    "after_ungetc" => ->(io) { io.ungetc("é") || [io.readpartial(3), io.readpartial(2)] },
    "after_ungetbyte" => ->(io) { io.ungetbyte(65) || [io.gets, io.readpartial(2)] },
    "sysread" => ->(io) { [io.sysread(3), io.sysread(4, s = +""), s] },
    "sysread_after_gets" => ->(io) { [io.gets, io.sysread(3)] },
    "gets" => ->(io) { [io.gets, $_, io.lineno, io.gets(chomp: true), io.gets(3), io.gets(nil), io.gets, $_] },
    "gets_of_a_paragraph" => ->(io) { [io.gets(""), io.gets] },
    "readline" => ->(io) { [io.readline, $_, io.readline(chomp: true), io.readline("t"), io.readline(nil)] },
    "readline_at_the_end" => ->(io) { [io.read, io.readline] },
    "getc" => ->(io) { [io.getc, io.getc, io.gets] },
    "getbyte" => ->(io) { [io.getbyte, io.readbyte, io.getc, io.gets] },
    "read" => ->(io) { [io.read(4), io.readpartial(2), io.getbyte, io.read] },
    "to_the_end" => ->(io) { [io.read, io.gets, io.getc, io.getbyte, io.readpartial(1)] },
    "the_end_empties_the_string" => lambda do |io|
      io.read && io.readpartial(1, text = +"abc")
    rescue EOFError
      text
    end,
    "another_encoding" => ->(io) { io.set_encoding("UTF-16LE:UTF-8") && [io.readpartial(4), io.getc, io.gets] },
    "universal_newlines" => ->(io) { io.set_encoding("UTF-8", universal_newline: true) && [io.gets, io.getc] },
    "of_a_closed_io" => ->(io) { io.close || io.readpartial(1) },
    "gets_of_a_closed_io" => ->(io) { io.close || io.gets },
    "with_a_bad_option" => ->(io) { io.gets(chop: true) }
  }
  writes = {
    "write" => ->(io) { [io.write("é1"), io.write(""), io.write(:symbol), io.write(nil), io.write("a", "b")] },
    "print" => ->(io) { [io.print("a", 1), io << "b" << 2, io.puts("c", ["d"])].first },
    "bytes" => ->(io) { io.write("\xFF\x00".b) },
    "another_encoding" => ->(io) { io.set_encoding("UTF-16LE") && io.write("é") },
    "newlines" => ->(io) { io.set_encoding("UTF-8", crlf_newline: true) && io.write("a\nb\n") },
    "buffered" => ->(io) { (io.sync = false) || [io.write("a"), io.write("b"), io.sync = true, io.write("c")] },
    "much" => ->(io) { io.write("x" * 3_000_000) },
    "much_in_parts" => ->(io) { io.write("x" * 1_000_000, "y" * 1_000_000) },
    "closed" => ->(io) { io.close || io.write("x") },
    "for_writing" => ->(io) { io.close_write && io.write("x") }
  }

  %w[pipe unix tcp].each do |kind|
    define_method("test_reads_of_a_#{kind}") do
      reads.each do |name, read|
        expected, seen = in_both do |waits|
          reader, writer = connection(kind)
          send = lambda do
            writer.write("line\nmore\nand the rest")
          rescue Errno::EPIPE
            nil # the reader has closed its end
          ensure
            writer.close
          end
          waits ? go { sleep(0.001) && send.call } : send.call
          outcome { read.call(reader) }
        end

        assert_equal([expected], [seen], name)
      end
    end

    define_method("test_writes_to_a_#{kind}") do
      writes.each do |name, write|
        expected, seen = in_both do
          reader, writer = connection(kind).rotate(kind == "pipe" ? 0 : 1)
          reading = Thread.new { reader.read }
          [outcome { write.call(writer) }, writer.close, reading.value.sum]
        end

        assert_equal([expected], [seen], name)
      end
    end
  end

  # A call that reads nothing, or is refused, needs no data and takes none.
  def test_arguments_that_need_no_data
    [
      -> { _1.gets(0) }, -> { _1.readline(0) }, -> { _1.gets("x", 0) }, -> { _1.gets(nil, 0) },
      -> { _1.gets(:x) }, -> { _1.gets("a", "b") }, -> { _1.gets(1, 2, 3) }, -> { _1.readline("a", "b") },
      -> { _1.getc(1) }, -> { _1.set_encoding("UTF-16LE") && _1.gets("x") }, -> { _1.gets("x".encode("UTF-16LE")) },
      -> { _1.readpartial(0) }, -> { _1.readpartial(-1) }, -> { _1.sysread(0) }, -> { _1.read(0) }
    ].each do |read|
      expected, seen = in_both do
        reader, writer = connection("unix")
        reader.timeout = 2
        at_once = outcome { read.call(reader) }
        writer.write("data")
        [at_once, outcome { reader.sysread(10) }]
      end

      assert_equal([expected, seen], [seen, expected], read.source_location.join(":"))
      refute_equal(IO::TimeoutError, expected.first.first)
    end
  end

  def test_separators_and_limits_that_wait
    [["\r\n"], ["\n", 50], [nil, 8], ["", 50], [8]].each do |arguments|
      reactor do
        reader, writer = connection("unix")
        reading = go { reader.gets(*arguments, chomp: true) }
        settle
        ["one", " two", "\r\n\n"].each { |part| writer.write(part) && settle }
        writer.close

        assert_equal("one two", reading.value.chomp, arguments.inspect)
      end
    end
  end

  # A paragraph at the end leaves a converter that has met the end, and that only Ruby's own method replaces.
  def test_a_converter_that_has_met_the_end
    %i[gets readline getc getbyte].each do |method|
      expected, seen = in_both do
        reader, writer = connection("pipe")
        reader.set_encoding("ISO-8859-1:UTF-8")
        writer.write("line\n\n\n")
        writer.close
        [outcome { reader.gets("") }, outcome { reader.public_send(method) }, reader.ungetbyte("zz"),
         *Array.new(2) { outcome { reader.public_send(method) } }]
      end

      assert_equal(expected, seen, method)
    end
  end

  # Ruby makes the read buffer of such an IO larger: a read takes all that is in a pipe, and much can be put back.
  def test_the_buffer_of_an_io_that_converts
    encodings = [["ISO-8859-1:UTF-8", {}], ["UTF-8", { universal_newline: true }], ["UTF-8", {}]]
    %i[gets readline getc getbyte].product(encodings) do |method, (encoding, options)|
      expected, seen = in_both do
        reader, writer = connection("pipe")
        reader.set_encoding(encoding, **options)
        writer.write("a\n#{"b" * 60_000}")
        reader.public_send(method)
        left = keep(IO.for_fd(reader.fileno, "rb", autoclose: false)).read_nonblock(100_000, exception: false)
        [left == :wait_readable || left.bytesize, outcome { reader.ungetbyte("c" * 9000) }]
      end

      assert_equal(expected, seen, [method, encoding])
    end
  end

  # A read that asked once more would take the datagram after it.
  def test_an_empty_datagram_is_one_end
    lines = { gets: nil, readline: EOFError }
    { **lines, getc: nil, getbyte: nil }.each do |method, found|
      reader, writer = UNIXSocket.pair(:DGRAM)
      writer.send("", 0)
      writer.send("next\n", 0)
      seen = Heddle.run do
        $_ = "before"
        [reader.public_send(method), $_]
      rescue EOFError => e
        [e.class, $_]
      end

      assert_equal([found, lines.key?(method) ? nil : "before"], seen, method)
      assert_equal("next\n", Heddle.run { reader.gets })
    ensure
      [reader, writer].each(&:close)
    end
  end

  # The string of a task that waits must not be changed, as in Ruby.
  def test_the_string_is_locked
    reactor do
      reader, writer = pipe
      string = +""
      reading = go { reader.readpartial(9, string) }
      settle

      assert_raises(RuntimeError) { string << "x" }
      writer.write("here")

      assert_equal("here", reading.value)
      assert_equal("here!", string << "!")
    end
  end

  def test_a_struck_reader_unlocks_its_string
    heddle_only("cancel")
    reader, writer = pipe
    string = +""
    Heddle.run(backend: backend) do
      task = Heddle.spawn { reader.readpartial(9, string) }
      task.wait(0.01)
      task.cancel.wait
      writer.write("next")

      assert_equal("next", reader.readpartial(9, string << "x"))
    end
  end

  # A task that waits for the bytes of one method finds the bytes that another one has put into Ruby's buffer, if any
  # are left.
  def test_two_readers
    reactor do
      reader, writer = pipe
      reader.ungetbyte(65) || reader.getbyte # now it has a buffer
      first = go { reader.gets }
      second = go { reader.readpartial(100) rescue nil } # rubocop:disable Style/RescueModifier
      settle
      writer.write("one\ntwo\n")
      writer.close

      assert_equal("one\ntwo\n", [first.value, second.value].join)
    end
  end

  # The reader takes a while: a string is whole, and it is what it was when it was written.
  def test_a_string_that_changes
    reactor do
      one, other = socket_pair
      string = "a" * 2_000_000
      writing = go { one.write(string) && one.close }
      settle
      string.replace("b" * 10)
      text = other.read

      assert_equal(["a" * 2_000_000, nil], [text, writing.failure])
    end
  end

  def test_an_error_is_told_once
    2.times do |number|
      reactor do
        one, other = connection("tcp")
        other.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")) && other.close
        sleep(0.01)
        methods = [-> { one.readpartial(5) }, -> { one.write("x") }].rotate(number)

        assert_raises(Errno::ECONNRESET) { methods.first.call }
        assert_raises(EOFError, Errno::EPIPE) { methods.last.call }
      end
    end
  end

  # Ruby names the place where it fills its read buffer.
  def test_an_error_while_the_read_buffer_is_filled
    %i[gets readline getc getbyte readchar].each do |name|
      reactor do
        one, other = connection("tcp")
        reading = go { assert_raises(Errno::ECONNRESET) { one.public_send(name) }.message }
        sleep(0.01)
        other.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")) && other.close

        assert_equal("Connection reset by peer @ io_fillbuf - fd:#{one.fileno} ", reading.value)
      end
    end
  end

  def test_a_peer_that_has_gone
    reactor do
      reader, writer = pipe
      reader.close

      assert_equal("Broken pipe", assert_raises(Errno::EPIPE) { writer.write("x") }.message)
    end
  end

  def test_io_timeout
    reactor do
      one, = socket_pair
      one.timeout = 0.02

      %i[readpartial sysread].each { |name| assert_raises(IO::TimeoutError) { one.public_send(name, 1) } }
      %i[gets readline getc getbyte].each { |name| assert_raises(IO::TimeoutError) { one.public_send(name) } }
      assert_raises(IO::TimeoutError) { one.write("x" * 10_000_000) }
    end
  end

  # What looks like a stream, and is a file: Ruby's own methods do it.
  def test_a_file_by_its_descriptor
    path = File.join(tempdir, "file")
    reactor do
      File.open(path, "w+") do |file|
        io = IO.for_fd(file.fileno, "r+", autoclose: false)
        io.sync = true

        assert_equal(300_000, io.write("x" * 300_000))
        io.rewind

        assert_equal([5, 100_000, 9], [io.readpartial(5), io.readpartial(100_000), io.sysread(9)].map(&:size))
      end
    end
  end

  # Who has a method of his own is asked.
  def test_methods_that_are_overridden
    loud = Class.new(UNIXSocket) do
      def write(*strings) = super(*strings.map(&:upcase))
      def readpartial(...) = super.reverse
    end
    reactor do
      one, other = loud.pair.each { |io| keep(io) }
      one.puts("abc")

      assert_equal("\nCBA", other.readpartial(10))
    end
  end

  # A round trip makes the two strings that are read.
  def test_objects
    heddle_only("the number of objects")
    one, other = socket_pair
    made = 0
    Heddle.run(backend: backend) do
      echo = Heddle.spawn { loop { other.write(other.readpartial(100)) } }
      10.times { one.write("x") && one.readpartial(100) }
      before = GC.stat(:total_allocated_objects)
      100.times { one.write("x") && one.readpartial(100) }
      made = GC.stat(:total_allocated_objects) - before
      echo.cancel
    end

    assert_operator(made, :<, 220)
  end

  # Ruby would make a lock with the first write, and an IO::Buffer with each. A line that is read is a string.
  def test_objects_of_the_first_use_of_an_io
    heddle_only("the number of objects")
    pairs = Array.new(50) { socket_pair }
    lines = nil
    made = Heddle.run(backend: backend) do
      [-> { pairs.each { |one,| one.write("x\n") } }, -> { lines = pairs.map { |_, other| other.gets } }].map do |use|
        before = GC.stat(:total_allocated_objects)
        use.call
        GC.stat(:total_allocated_objects) - before
      end
    end

    assert_operator(made.first, :<, 25)
    assert_operator(made.last, :<, 75)
    assert_equal(["x\n"] * 50, lines)
  end

  def test_a_first_write_that_does_not_fit
    [["a" * 1_000_000], %w[a b c d].map { |char| char * 300_000 }].each do |strings|
      one, other = socket_pair
      rest = reactor do
        writers = [strings, ["z"]].map { |own| go { one.write(*own) } }
        received = other.read(strings.sum(&:size) + 1)

        assert_equal([strings.sum(&:size), 1], writers.map(&:value))
        received.delete_prefix(strings.join)
      end

      assert_equal("z", rest)
    end
  end

  def test_switched_off
    heddle_only("HEDDLE_WITHOUT")
    program = <<~RUBY
      one, other = UNIXSocket.pair
      Heddle.run do
        Heddle.spawn { 3.times { other.write(other.readpartial(100)) } }
        3.times { one.write("x") && print(one.readpartial(100)) }
      end
      print(IO.instance_method(:readpartial).owner, IO.private_method_defined?(:__heddle_readpartial))
    RUBY
    env = { "HEDDLE_WITHOUT" => "direct_io", "HEDDLE_BACKEND" => backend }

    assert_equal("xxxIOfalse", run_ruby(program, env: env).out)
    assert_equal("xxxIOtrue", run_ruby(program, env: env.merge("HEDDLE_WITHOUT" => "")).out)
  end
end
