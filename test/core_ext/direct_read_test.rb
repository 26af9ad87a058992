# frozen_string_literal: true

# bin/test: takes 3 s, 0.7 of a core

require_relative "../test_helper"
require "support/plain_ruby"

# IO#read with a length and IO#syswrite do what Ruby's own do, and wait in between.
contract "DirectRead", both_ways: true do
  include TestSupport::PlainRuby

  # Each is given what was written before, or is a file: "line\nmore\nand the rest".
  reads = {
    "read" => ->(io) { [io.read(7), io.read(100), io.read(1), io.read] },
    "read_nothing" => ->(io) { [io.read(0), io.read(0, +"x")] },
    "read_less_than_nothing" => ->(io) { io.read(-1) },
    "read_by_no_number" => ->(io) { io.read("3") },
    "read_a_rounded_number" => ->(io) { io.read(3.9) },
    "read_of_three_arguments" => ->(io) { io.read(1, +"", 3) },
    "read_all" => ->(io) { [io.read, io.read, io.read(1)] },
    "read_all_into_a_string" => ->(io) { [io.read(nil, s = +"é"), s] },
    "into_a_string" => ->(io) { [io.read(6, s = +"äb"), s, io.read(100, s), s] },
    "into_a_longer_string" => ->(io) { [io.read(3, s = "x" * 50), s] },
    "into_a_shared_string" => ->(io) { [io.read(9, s = (t = "y" * 50).dup), s, t] },
    "into_a_frozen_string" => ->(io) { io.read(3, "") },
    "into_no_string" => ->(io) { io.read(3, :x) },
    "into_a_string_at_the_end" => ->(io) { [io.read(23), io.read(3, s = +"text"), s] },
    "much" => ->(io) { io.read(3_000_000).size },
    "after_gets" => ->(io) { [io.gets, io.read(3), io.read(100)] },
    "after_ungetc" => ->(io) { io.ungetc("é") || [io.read(3), io.read(2)] },
    "after_ungetbyte" => ->(io) { io.ungetbyte(65) || [io.read(3), io.gets] },
    "before_others" => ->(io) { [io.read(3), io.gets, io.readpartial(2), io.getc, io.sysread(0)] },
    "another_encoding" => ->(io) { io.set_encoding("UTF-16LE:UTF-8") && [io.read(4), io.getc, io.read(4)] },
    "universal_newlines" => ->(io) { io.set_encoding("UTF-8", universal_newline: true) && [io.read(4), io.gets] },
    "of_a_closed_io" => ->(io) { io.close || io.read(1) }
  }
  text = "line\nmore\nand the rest"

  %w[pipe unix tcp].each do |kind|
    define_method("test_reads_of_a_#{kind}") do
      reads.each do |name, read|
        expected, seen = in_both do |waits|
          reader, writer = connection(kind)
          write = lambda do
            [text[0, 5], text[5..]].each { |part| writer.write(part) && waits && sleep(0.001) }
            writer.close
          rescue Errno::EPIPE
            nil # the reader has closed its end
          end
          waits ? go { sleep(0.001) && write.call } : write.call
          outcome { read.call(reader) }
        end

        assert_equal([expected], [seen], name)
      end
    end
  end

  # Ruby has not touched it, either.
  def test_the_string_of_a_read_that_fails_stays
    reactor do
      folder = keep(File.open(tempdir))
      string = +"text"

      assert_raises(Errno::EISDIR) { folder.read(10, string) }
      assert_equal("text", string)
    end
  end

  define_method(:test_reads_of_a_file) do
    path = File.join(tempdir, "file")
    File.write(path, text)
    [-> { File.open(path) }, -> { File.open(path, "r+b") }, -> { IO.for_fd(IO.sysopen(path)) }].each do |open|
      reads.each do |name, read|
        expected, seen = in_both { outcome { read.call(keep(open.call)) } }

        assert_equal([expected], [seen], name)
      end
    end
  end

  def test_a_file_that_was_written_to
    path = File.join(tempdir, "file")
    expected, seen = in_both do
      File.open(path, "w+") do |file|
        [file.write("text"), file.read(2), file.rewind, file.write("T"), file.read(2), file.pos, file.read(9)]
      end
    end

    assert_equal(expected, seen)
  end

  def test_what_is_no_file_that_can_be_read
    folder = tempdir
    path = File.join(folder, "file")
    expected, seen = in_both do
      files = [[folder], [path, "w"], [File::NULL], ["/dev/zero"]]
      files.map { |arguments| outcome { keep(File.open(*arguments)).read(5) } }
    end

    assert_equal(expected, seen)
  end

  writes = {
    "syswrite" => ->(io) { [io.syswrite("é1"), io.syswrite(""), io.syswrite(:symbol), io.syswrite("\xFF".b)] },
    "another_encoding" => ->(io) { io.set_encoding("UTF-16LE") && io.syswrite("é") },
    "buffered" => ->(io) { (io.sync = false) || io.syswrite("a") },
    "of_a_closed_io" => ->(io) { io.close || io.syswrite("x") },
    "no_string" => ->(io) { io.syswrite(nil) },
    "no_argument" => lambda(&:syswrite)
  }

  %w[pipe unix tcp].each do |kind|
    define_method("test_writes_to_a_#{kind}") do
      writes.each do |name, write|
        expected, seen = in_both do
          reader, writer = connection(kind)
          [outcome { write.call(writer) }, writer.close, reader.read]
        end

        assert_equal([expected], [seen], name)
      end
    end
  end

  # A part is written, and then the writer waits for its reader.
  def test_syswrite_of_much
    reactor do
      reader, writer = pipe
      text = "text" * 50_000
      parts = [writer.syswrite(text)]
      reading = go { reader.read }
      parts << writer.syswrite(text.byteslice(parts.sum..)) while parts.sum < text.size
      writer.close

      assert_operator(parts.first, :<, text.size)
      assert_equal(text, reading.value)
    end
  end

  def test_errors
    reactor do
      reader, writer = pipe
      reader.close
      one, other = connection("tcp")
      other.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")) && other.close
      sleep(0.01)

      assert_equal("Broken pipe", assert_raises(Errno::EPIPE) { writer.syswrite("x") }.message)
      assert_equal("Connection reset by peer", assert_raises(Errno::ECONNRESET) { one.read(5) }.message)
    end
  end

  # The string of a task that waits must not be changed, as in Ruby.
  def test_the_string_is_locked
    reactor do
      reader, writer = pipe
      string = +""
      reading = go { reader.read(8, string) }
      settle

      assert_raises(RuntimeError) { string << "x" }
      writer.write("here")
      settle
      writer.write("here")

      assert_equal("herehere", reading.value)
      assert_equal("herehere!", string << "!")
    end
  end

  def test_who_waits
    reactor do
      one, = socket_pair
      one.timeout = 0.02

      assert_raises(IO::TimeoutError) { one.read(1) }
      one.timeout = nil
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { one.read(1) } }
      reading = go { one.read(5) }
      settle
      one.close

      assert_instance_of(IOError, reading.failure)
    end
  end

  # Bytes that have come for a line stay in Ruby's buffer, where the other reader finds them.
  def test_two_readers
    reactor do
      reader, writer = pipe
      reader.ungetbyte(65) || reader.getbyte # now it has a buffer
      first = go { reader.gets }
      second = go { reader.read(6) }
      settle
      writer.write("one\ntwo\nx\n")
      writer.close

      assert_equal("one\ntwo\nx\n".chars.sort, [first.value, second.value, reader.read].join.chars.sort)
    end
  end

  # The bytes come in two parts, of which neither is text.
  def test_into_a_string_that_is_text
    name = File.join(tempdir, "fifo").tap { |path| File.mkfifo(path) }
    reactor do
      writer = keep(File.open(name, "r+")).tap { |io| io.sync = true }
      reader = keep(File.open(name))
      writer.write("\xC3\xA9\xC3".b)
      string = +"é"
      job = go { reader.read(6, string) }
      settle
      writer.write("\xA9\xC3\xA9".b)

      assert_same(string, job.value)
      assert_equal(["ééé", Encoding::UTF_8, true], [string, string.encoding, string.valid_encoding?])
    end
  end

  def test_switched_off
    heddle_only("HEDDLE_WITHOUT")
    program = <<~RUBY
      one, other = UNIXSocket.pair
      Heddle.run do
        Heddle.spawn { 3.times { other.syswrite(other.read(1)) } }
        3.times { one.syswrite("x") && print(one.read(1)) }
        print(File.open(__FILE__ == "-e" ? "/proc/self/stat" : __FILE__) { |file| file.read(1).size })
      end
      print(IO.private_method_defined?(:__heddle_direct_read))
    RUBY
    env = { "HEDDLE_BACKEND" => backend }
    outputs = { "direct_read" => "xxx1false", "whole_file" => "xxx1true", "" => "xxx1true" }

    outputs.each do |without, printed|
      assert_equal(printed, run_ruby(program, env: env.merge("HEDDLE_WITHOUT" => without)).out)
    end
  end
end
