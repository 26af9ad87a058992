# frozen_string_literal: true

require_relative "../../test_helper"

# Numbers at the edge: what plain Ruby says to each of these calls, the fiber hears too.
contract "TransferArguments" do
  def setup
    super
    Heddle.run { nil } # (it gets the warning about IO::Buffer out of the way)
  end

  # Each case is run without a scheduler first.
  def assert_as_in_plain_ruby(cases, &one)
    own = cases.map { |given| outcome(given, &one) }
    reactor do
      cases.zip(own) { |given, expected| assert_equal(expected, outcome(given, &one), given.inspect) }
    end
  end

  def folder = @folder ||= tempdir

  def outcome(given)
    path = File.join(folder, "file")
    File.binwrite(path, "0123456789abcdef")
    result = begin
      yield(path, *given)
    rescue StandardError => e
      [e.class, e.message]
    end
    [result, File.size(path) > 1000 ? File.size(path) : File.binread(path)]
  end

  offsets = [-(1 << 63), -2, -1, 0, 3, 16, (1 << 63) - 1, 1 << 63, nil, "1", 1.9]

  define_method(:test_pread) do
    cases = [-1, 0, 1, 20, nil, "1", 1 << 70].product(offsets, %w[r w])
    assert_as_in_plain_ruby(cases) do |path, length, offset, mode|
      File.open(path, mode) do |file|
        space = +"zz"
        results = [-> { file.pread(length, offset) }, -> { file.pread(length, offset, space) }].map do |call|
          call.call
        rescue StandardError => e
          [e.class, e.message]
        end
        [results, space, mode == "w" ? nil : file.pos]
      end
    end
  end

  # (Ruby asks the kernel for 2**64 - 1 bytes, which refuses: it must not read them into the two bytes.)
  def test_sysread_of_less_than_nothing
    reactor do
      reader, writer = IO.pipe.each { |io| keep(io) }
      writer.write("x" * 60_000)
      [reader, keep(File.open(__FILE__))].product([-1, -5, -(1 << 62)]) do |io, length|
        space = +"zz"

        assert_raises(Errno::EFAULT) { io.sysread(length, space) }
        assert_equal("zz", space)
        assert_raises(ArgumentError) { io.sysread(length) }
      end
      assert_equal(60_000, reader.readpartial(70_000).size)
    end
  end

  define_method(:test_pwrite) do
    object = Object.new.tap { |one| one.define_singleton_method(:to_s) { "object" } }
    strings = ["ab", "", :symbol, "x" * 100_000, object, "é".encode("UTF-16LE")]
    assert_as_in_plain_ruby(strings.product(offsets, %w[r r+ w a])) do |path, string, offset, mode|
      File.open(path, mode) { |file| [file.pwrite(string, offset), file.pos] }
    end
  end

  def test_pread_of_what_has_no_positions
    assert_as_in_plain_ruby([-1, 0, 2].product([-1, 0], [0, 1])) do |_path, length, offset, side|
      ends = IO.pipe
      ends[side].pread(length, offset, +"zz")
    ensure
      ends&.each(&:close)
    end
  end

  def test_pwrite_to_what_has_no_positions
    assert_as_in_plain_ruby([-1, 0, nil].product(%w[x], [0, 1])) do |_path, offset, string, side|
      ends = IO.pipe
      ends[side].pwrite(string, offset)
    ensure
      ends&.each(&:close)
    end
  end

  # IO::Buffer.for locks the string that it is given.
  def test_one_string_is_written_by_several_at_once
    reactor do
      text = "line\n" * 100_000
      files = Array.new(4) { |i| keep(File.open(File.join(folder, i.to_s), "w")) }
      jobs = files.map { |file| go { file.pwrite(text, 0) } }
      settle
      text << "more"

      assert_equal([500_000] * 4, jobs.map(&:value))
      files.each { |file| assert_equal(500_000, file.size) }
    end
  end

  kinds = {
    "file" => ->(path) { [File.open(path, "r+")] },
    "file_that_is_only_read" => ->(path) { [File.open(path)] },
    "file_that_is_only_written" => ->(path) { [File.open(path, "a")] },
    "pipe" => ->(_) { IO.pipe.tap { |_, writer| writer.write("hello world and more") } },
    "socket" => ->(_) { UNIXSocket.pair.tap { |_, other| other.write("hello world and more") } },
    "datagram_socket" => ->(_) { UNIXSocket.pair(:DGRAM).tap { |_, other| other.send("hello world and more", 0) } }
  }
  kinds.each do |kind, open|
    %i[read write pread pwrite].each do |method|
      define_method("test_#{method}_of_a_buffer_and_a_#{kind}") do
        positions = method.start_with?("p") ? [-1, 3, nil] : [:none]
        cases = positions.product([-1, 0, 5, 11, 1 << 40, 1 << 64, nil], [-1, 0, 1, 10, 11, nil])
        assert_as_in_plain_ruby(cases) do |path, from, length, offset|
          io, other = open.call(path)
          buffer = IO::Buffer.new(10).tap { |one| one.set_string("ABCDEFGHIJ") }
          [buffer.public_send(method, io, *(from unless from == :none), length, offset), buffer.get_string]
        ensure
          io&.close
          other&.close
        end
      end
    end
  end

  # An empty datagram is a datagram.
  def test_nothing_is_written
    reactor do
      one, other = UNIXSocket.pair(:DGRAM).each { |io| keep(io) }

      assert_equal(0, one.syswrite(""))
      assert_equal("", other.recvmsg_nonblock.first)
      other.send("x", 0)

      assert_equal(0, IO::Buffer.new(0).read(one))
      assert_equal("x", one.recv(5))
    end
  end
end
