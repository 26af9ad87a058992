# frozen_string_literal: true

require "pathname"
require "tmpdir"
require_relative "../test_helper"

# A line that is written to a socket is one packet, not the text and then the newline.
contract "JoinedWrite" do
  # What each system call has written: a socket that keeps them apart tells.
  def packets
    sender, receiver = UNIXSocket.pair(:SEQPACKET).map { |socket| keep(socket) }
    reactor { yield sender }
    sender.close
    Array.new(20) { receiver.recv(1_000_000) }.take_while { |packet| !packet.to_s.empty? }
  end

  def test_puts
    assert_equal(%W[one\n two\n 3\n \n], packets { |socket| socket.puts("one", "two\n", [3], "") })
  end

  def test_several_strings
    assert_equal(["4\r\nbody\r\n"], packets { |socket| assert_equal(9, socket.write("4\r\n", "body", "\r\n")) })
  end

  def test_what_is_no_string
    assert_equal(["1a/b"], packets { |socket| assert_equal(4, socket.write(1, :a, Pathname("/b"))) })
  end

  def test_bytes_and_text
    body = "\xFF\x00".b

    assert_equal(["head ".b + body], packets { |socket| assert_equal(7, socket.write("head ", body)) })
  end

  def test_encodings_that_do_not_mix
    got = packets { |socket| assert_equal(4, socket.write("é", "\xE9".b, "!")) }.join.b

    assert_equal("\xC3\xA9\xE9!".b, got)
  end

  def test_what_precedes_a_string_that_cannot_be_converted_is_written
    Dir.mktmpdir do |folder|
      path = File.join(folder, "text")
      reactor do
        File.open(path, "w:iso-8859-1:utf-8") do |file|
          error = assert_raises(Encoding::UndefinedConversionError) { file.write("é\n", "\u65e5", "z") }

          assert_nil(error.cause)
          file.write("after")
        end
      end

      assert_equal("\xE9\nafter".b, File.binread(path))
    end
  end

  # Buffered strings are written one after the other, the rest in one piece.
  def test_what_precedes_an_object_that_is_no_string_is_written_if_the_io_is_buffered
    bad = Class.new { def to_s = raise("bad") }.new
    Dir.mktmpdir do |folder|
      { true => "after", false => "abéafter" }.each do |sync, text|
        path = File.join(folder, sync.to_s)
        reactor do
          File.open(path, "w") do |file|
            file.sync = sync

            assert_raises(RuntimeError) { file.write("a", :b, "é", bad, "z") }
            file.write("after")
          end
        end

        assert_equal(text, File.read(path))
      end
    end
    sent = packets { |socket| assert_raises(RuntimeError) { socket.write("a", bad) } && socket.write("after") }

    assert_equal(["after"], sent)
  end

  def test_an_object_that_closes_the_io
    reactor do
      _, file = pipe
      file.sync = false
      closes = Object.new.tap { |object| object.define_singleton_method(:to_s) { file.close || raise("bad") } }

      assert_equal("bad", assert_raises(RuntimeError) { file.write("a", closes) }.message)
      assert_raises(IOError) { file.write("a", closes) }
    end
  end

  def test_much
    big = "x" * 300_000
    reactor do
      one, other = socket_pair
      reading = go { other.read }

      assert_equal(300_001, one.write(big, "\n"))
      one.close

      assert_equal("#{big}\n", reading.value)
    end
  end

  def test_a_head_and_a_large_body_are_one_packet
    head = "head\r\n\r\n"
    body = "x" * 20_000

    assert_equal(["#{head}#{body}!"], packets { |socket| assert_equal(20_009, socket.write(head, "", body, "!")) })
  end

  # The socket takes a part of them only, which may end in the midst of any one.
  def test_large_strings_of_several_tasks_do_not_mix
    written = Array.new(6) { |i| ["<#{i}", "", i.to_s * (70_000 + (i * 31_013)), "b" * 90_000, ">"] }
    reactor do
      one, other = socket_pair
      reading = go { other.read }
      sizes = written.map { |parts| go { one.write(*parts) } }.map(&:value)
      one.close

      assert_equal(written.map { |parts| parts.sum(&:bytesize) }, sizes)
      assert_equal(written.map(&:join).sort, reading.value.scan(/<.*?>/).sort)
    end
  end

  # The bytes that are read of it, beside the bytes that fill it. The first write that waits is finished by Ruby, which
  # makes the lock of the IO then; the second is not.
  def read_of_full_socket(kind, *parts)
    one, other = UNIXSocket.pair(kind).map { |socket| keep(socket) }
    reactor do
      reading = go { read_all(other) }
      2.times do
        fill(one)
        one.write(*parts)
      end
      one.close
      reading.value
    end
  end

  def fill(socket)
    loop { socket.write_nonblock("x" * 1000) }
  rescue IO::WaitWritable
    pass
  end

  def read_all(socket)
    read = []
    while (bytes = socket.recv(100_000)) && !bytes.empty?
      read << bytes.delete("x")
    end
    read.reject(&:empty?)
  end

  # The turn of a task may end at a write for which the buffer had room, and then it has none.
  def test_lines_of_tasks_that_compute_do_not_mix
    text = reactor do
      reader, writer = pipe
      writer.fcntl(1031, 4096) # F_SETPIPE_SZ
      writer.sync = false
      random = Random.new(1)
      tasks = Array.new(4) do |number|
        sizes = number.zero? ? 500..2000 : 1..9
        go { 150.times { compute(0.0003) && writer.puts(number.to_s * random.rand(sizes)) } }
      end
      reading = go { slowly(reader) }
      tasks.each(&:value)
      writer.close
      reading.value
    end

    assert_empty(text.lines(chomp: true).grep_v(/\A(\d)\1*\z/))
    assert_equal(600, text.lines.size)
  end

  def compute(seconds)
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    true until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
    true
  end

  def slowly(reader)
    text = +""
    while (part = reader.read(700))
      text << part
      sleep(0.0005)
    end
    text
  end

  def test_a_full_socket_and_an_empty_string
    read = read_of_full_socket(:STREAM, "", "y" * 20_000, "", "!")

    assert_equal("#{"y" * 20_000}!" * 2, read.join)
  end

  def test_a_full_socket_of_messages
    read = read_of_full_socket(:SEQPACKET, "head", "y" * 20_000, "!")

    assert_equal(["head#{"y" * 20_000}!"] * 2, read)
  end

  def test_strings_that_change_while_they_are_written
    body = "x" * 500_000
    reactor do
      one, other = socket_pair
      writing = go { one.write("head", body) }
      reading = go { other.readpartial(1) + other.read }
      body.replace("changed") unless reference? # (a thread may not have begun)
      writing.value
      one.close

      assert_equal("head#{"x" * 500_000}", reading.value)
    end
  end

  def test_more_strings_than_one_call_takes
    parts = Array.new(40) { |i| (48 + i).chr * 1000 }

    assert_equal([parts.join], packets { |socket| assert_equal(40_000, socket.write(*parts)) })
  end

  def test_a_peer_that_has_gone
    reactor do
      one, other = socket_pair
      other.close

      assert_raises(Errno::EPIPE) { one.write("head", "x" * 20_000) }
    end
  end

  def test_a_buffered_file_stays_buffered
    path = File.join(tempdir, "file")
    reactor do
      File.open(path, "w") do |file|
        file.puts("line")

        assert_equal(0, File.size(path))
        assert_equal(3, file.write("a", "b", "\n"))
      end

      assert_equal("line\nab\n", File.read(path))
    end
  end

  def test_an_external_encoding
    reader, writer = pipe
    reactor do
      writer.set_encoding("UTF-16LE:UTF-8")
      writer.write("é", "a")
      writer.close

      assert_equal("#{"é".encode("UTF-16LE").b}a\0", reader.binmode.read)
    end
  end

  def test_closed
    one, = socket_pair
    one.close

    reactor { assert_raises(IOError) { one.write("a", "b") } }
  end
end
