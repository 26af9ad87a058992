# frozen_string_literal: true

require_relative "../../test_helper"

# Every way to read waits for its data, and the others run meanwhile.
contract "Read", both_ways: true do
  %i[readpartial sysread].each do |read|
    on_streams "#{read} waits for the first bytes" do |reader, writer|
      job = go { reader.__send__(read, 100) }
      settle

      refute_predicate(job, :finished?)
      writer.write("hello")

      assert_equal("hello", job.value)
    end

    on_streams "#{read} fills the given buffer" do |reader, writer|
      buffer = +"something else that is longer than the data"
      job = go { reader.__send__(read, 100, buffer) }
      settle
      writer.write("hello")

      assert_same(buffer, job.value)
      assert_equal("hello", buffer)
    end
  end

  on_streams "readpartial returns at most what was asked for" do |reader, writer|
    writer.write("hello")

    assert_equal("he", reader.readpartial(2))
    assert_equal("llo", reader.readpartial(10))
  end

  on_streams "read waits for all bytes asked for" do |reader, writer|
    job = go { reader.read(6) }
    writer.write("abc")
    settle

    refute_predicate(job, :finished?)
    writer.write("def")

    assert_equal("abcdef", job.value)
  end

  on_streams "read without a length waits for the end" do |reader, writer|
    job = go { reader.read }
    writer.write("abc")
    settle
    writer.write("def")
    settle

    refute_predicate(job, :finished?)
    writer.close

    assert_equal("abcdef", job.value)
  end

  on_streams "read of a large amount" do |reader, writer|
    data = Random.new(42).bytes(3_000_000)
    job = go { reader.read(data.bytesize) }
    sent = go { writer.write(data) }

    assert_equal(data, job.value.b)
    assert_equal(data.bytesize, sent.value)
  end

  on_streams "gets waits for the whole line" do |reader, writer|
    job = go { reader.gets }
    writer.write("ab")
    settle

    refute_predicate(job, :finished?)
    writer.write("c\nrest")

    assert_equal("abc\n", job.value)
    assert_equal("rest", reader.readpartial(10))
  end

  on_streams "gets with a separator" do |reader, writer|
    job = go { [reader.gets(";"), reader.gets, reader.gets("\n\n")] }
    writer.write("one;two\nthree\nfour\n\nfive")

    assert_equal(["one;", "two\n", "three\nfour\n\n"], job.value)
  end

  on_streams "gets with a limit", TestSupport::Streams::PLAIN do |reader, writer|
    job = go { [reader.gets(3), reader.gets(";", 10), reader.gets(nil, 4), reader.gets("", chomp: true)] }
    writer.write("onetwo;four\n\npara\ngraph\n\nrest")

    assert_equal(["one", "two;", "four", "para\ngraph"], job.value)
  end

  on_streams "each_line readlines and readline" do |reader, writer|
    job = go { [reader.readline, reader.to_enum(:each_line).first(2), reader.readlines] }
    %W[a\n b\n c\n d\n e].each do |piece|
      writer.write(piece)
      settle
    end
    writer.close

    assert_equal(["a\n", %W[b\n c\n], %W[d\n e]], job.value)
  end

  on_streams "getc and getbyte wait" do |reader, writer|
    job = go { [reader.getc, reader.getbyte, reader.readchar, reader.to_enum(:each_byte).first(2)] }
    "abcde".each_char do |char|
      settle
      writer.write(char)
    end

    assert_equal(["a", 98, "c", [100, 101]], job.value)
  end

  on_streams "ungetc comes first" do |reader, writer|
    reader.ungetc("x")

    assert_equal("x", reader.readpartial(10))
    job = go { reader.readpartial(10) }
    settle
    writer.write("y")

    assert_equal("y", job.value)
  end

  on_streams "a length of zero does not wait" do |reader, _writer|
    assert_equal("", reader.readpartial(0))
    assert_equal("", reader.read(0))
    assert_equal("", reader.sysread(0))
  end

  on_streams "bytes arrive in order across many small reads" do |reader, writer|
    go do
      1000.times do |i|
        writer.write("#{i}\n")
        sleep(0) if (i % 50).zero?
      end
      writer.close
    end

    assert_equal((0...1000).to_a, reader.to_enum(:each_line).map(&:to_i))
  end

  on_streams "others run while one reads" do |reader, writer|
    assert_others_run do
      go { others_have_run && writer.write("x") }
      reader.readpartial(1)
    end
  end
end
