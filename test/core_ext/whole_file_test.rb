# frozen_string_literal: true

# bin/test: takes 6 s, 0.8 of a core

require "pathname"
require_relative "../test_helper"

# A large file that the kernel has in memory is read and written in pieces: the others have their turns in between.
contract "WholeFile" do
  # (Ruby's own are replaced for plain threads, too.)
  { read: "1..4", binread: "1..3", readlines: "1..3", foreach: "1..3", sysopen: "1..3" }.each do |name, expected|
    define_method("test_too_few_and_too_many_arguments_of_#{name}") do
      block = proc {} if name == :foreach
      use = lambda do |*arguments|
        assert_raises(ArgumentError) { File.public_send(name, *arguments, &block) }.message
      end

      [-> { reactor(&_1) }, ->(call) { Thread.new(&call).value }].each do |way|
        assert_equal("wrong number of arguments (given 0, expected #{expected})", way.call(-> { use.call }))
        assert_equal("wrong number of arguments (given 6, expected #{expected})",
                     way.call(-> { use.call("f", 1, 2, 3, 4, 5) }))
      end
    end
  end

  def test_a_subclass_with_a_read_of_its_own
    path = File.join(tempdir, "large")
    File.binwrite(path, "x" * 3_000_000)
    reads = 0
    counted = Class.new(File) do
      define_method(:read) do |length = nil|
        reads += 1
        super(length)
      end
    end

    assert_equal(3_000_000, reactor { counted.open(path) { |file| file.read.size } })
    assert_equal(1, reads)
  end

  def data
    @data ||= (Random.new(7).bytes(65_536) * 256).freeze # 16 MB
  end

  def path
    @path ||= File.join(tempdir, "large").tap { |name| File.binwrite(name, data) }
  end

  # Runs the block; fails if a fiber that is ready all the time has not had several turns meanwhile.
  def assert_turns(at_least: 2)
    turns = 0
    running = true
    path
    go { (turns += 1) && sleep(0) while running }
    value = yield
    running = false

    assert_operator(turns, :>=, at_least) unless reference?
    value
  ensure
    running = false
  end

  { "binread" => ->(path) { File.binread(path) }, "read" => ->(path) { File.read(path) },
    "read_of_an_open_file" => ->(path) { File.open(path, "rb", &:read) },
    "read_of_so_many_bytes" => ->(path) { File.open(path) { |file| file.read(1 << 24) } },
    "sysread" => ->(path) { File.open(path) { |file| file.sysread(1 << 24) } },
    "readpartial" => ->(path) { File.open(path) { |file| file.readpartial(1 << 24) } },
    "pread" => ->(path) { File.open(path) { |file| file.pread(1 << 24, 0) } } }.each do |name, reading|
    define_method("test_#{name}") do
      reactor { assert_equal(data, assert_turns { reading.call(path) }.b) }
    end
  end

  # What the methods give or raise for this path.
  def outcomes(path)
    [File.method(:read), IO.method(:read), File.method(:binread), Class.new(File).method(:read)].map do |method|
      content = method.call(path)
      [content, content.encoding, content.valid_encoding?, content.frozen?]
    rescue StandardError => e
      [e.class, e.message]
    end
  end

  def paths
    { "empty" => "", "small" => "x", "page" => "y" * 4096, "utf8" => "\u00e9", "other" => "a\xff\r\nb".b }
      .map { |name, content| File.join(tempdir, name).tap { |file| File.binwrite(file, content) } } +
      [tempdir, File.join(tempdir, "none"), "", "a\0b", "a".encode("UTF-16LE"), nil, 1, "/proc/self/comm"]
  end

  def test_small_files_are_read_as_without_a_scheduler
    names = paths + [Pathname.new(paths[1])]
    expected = names.map { |name| outcomes(name) }

    assert_equal(expected, reactor { names.map { |name| outcomes(name) } })
  end

  def default_encodings(external, internal)
    verbose = $VERBOSE
    $VERBOSE = nil
    Encoding.default_external = external
    Encoding.default_internal = internal
  ensure
    $VERBOSE = verbose
  end

  def test_an_offset_that_is_none_is_refused_as_by_ruby
    reactor do
      [false, "1"].each do |offset|
        assert_raises(TypeError) { File.write(File.join(tempdir, "written"), "x", offset) }
      end
    end
  end

  def test_small_files_are_read_in_the_default_encodings
    before = [Encoding.default_external, Encoding.default_internal]
    file = paths[3]
    [%w[BINARY], %w[ISO-8859-1], %w[ISO-8859-1 UTF-8], %w[UTF-8 UTF-8]].each do |external, internal|
      default_encodings(external, internal)

      assert_equal(outcomes(file), reactor { outcomes(file) })
    end
  ensure
    default_encodings(*before)
  end

  def test_who_reads_small_files_starves_nobody
    file = paths[1]

    reactor { assert_turns { 20_000.times { File.read(file) } } }
  end

  def test_a_small_file_that_is_read_makes_one_object
    heddle_only("Ruby makes a File")
    file = paths[2]
    made = reactor do
      50.times { File.read(file) }
      before = GC.stat(:total_allocated_objects)
      100.times { File.read(file) }
      GC.stat(:total_allocated_objects) - before
    end

    assert_operator(made, :<, 400)
  end

  def text = @text ||= ("line\n" * 300_000).freeze

  # The text that is read after a line, with its encoding, and the position of the file afterwards.
  def reads(mode, *length)
    File.open(path, mode) do |file|
      file.gets
      file.ungetc("x") if length.any? # (Ruby forgets it when it reads all)
      whole = file.read(*length)
      [whole.hash, whole.encoding, file.pos, file.read, file.read(10)]
    end
  end

  def test_the_rest_of_an_open_file
    File.write(path, text)
    rest = text[5..]
    reactor do
      assert_equal([rest.hash, Encoding::UTF_8, text.bytesize, "", nil], reads("r"))
      assert_equal([rest.hash, Encoding::BINARY, text.bytesize, "", nil], reads("rb"))
      assert_equal(["x#{rest}".hash, Encoding::BINARY, text.bytesize, "", nil], reads("r", 1 << 24))
      assert_equal(["x#{rest}"[0, 1_200_000].hash, Encoding::BINARY, 1_200_004], reads("r", 1_200_000).first(3))
    end
  end

  # What a read of a large file gives, and what the reads after it do, is what plain Ruby gives.
  mib = 1 << 20
  lengths = [nil, mib, mib + 1, 5 * mib, -1, 1 << 70]
  befores = {
    "nothing" => ->(_) {},
    "a_line" => ->(file) { file.gets && file.getbyte },
    "ungetbyte" => ->(file) { file.ungetbyte("ABC") },
    "a_write_in_the_buffer" => ->(file) { file.write("xyz") }
  }
  %w[r r+ a+].product(befores.to_a) do |mode, (name, before)|
    next if mode == "r" && name == "a_write_in_the_buffer"

    define_method("test_reads_in_mode_#{mode}_after_#{name}") do
      cases = [5, (2 * mib) + 4, (2 * mib) + 5, 3 * mib].product(lengths)
      own = cases.map { |position, length| outcome_of_reading(mode, position, length, before) }
      reactor do
        cases.zip(own) do |(position, length), expected|
          assert_equal(expected, outcome_of_reading(mode, position, length, before), "read(#{length}) at #{position}")
        end
      end
    end
  end

  def outcome_of_reading(mode, position, length, before)
    @contents ||= Random.new(3).bytes((1 << 21) + 5)
    name = File.join(tempdir, "read")
    File.binwrite(name, @contents) unless File.size?(name) == @contents.bytesize
    File.open(name, mode) do |file|
      file.seek(position)
      before.call(file)
      whole = file.read(*length)
      rest = file.read(2 << 20)
      [whole&.bytesize, whole&.encoding, whole.hash, rest.hash, file.pos, file.eof?, file.read]
    end
  rescue ArgumentError, RangeError => e
    e.message
  end

  # The usual loop ended never.
  def test_reading_until_the_end
    reactor do
      pieces = []
      File.open(path) do |file|
        while (piece = file.read((1 << 22) + 1))
          pieces << piece.bytesize
          break if pieces.size > 10
        end
      end

      assert_equal(([(1 << 22) + 1] * 3) + [(1 << 22) - 3], pieces)
    end
  end

  def test_conversions_are_made
    File.write(path, text.tr("\n", "\r"))
    reactor do
      assert_equal(text, File.open(path, "rt", &:read))
      assert_equal(Encoding::UTF_16LE, File.open(path, "r:UTF-8:UTF-16LE", &:read).encoding)
      assert_equal(Encoding::ISO_8859_1, File.open(path, "r:ISO-8859-1", &:read).encoding)
    end
  end

  def test_a_file_that_is_closed_or_only_written
    reactor do
      File.open(path) do |file|
        file.close
        assert_raises(IOError) { file.read }
      end
      File.open(path, "a") { |file| assert_raises(IOError) { file.read } }
    end
  end

  def test_copying
    reactor { assert_turns(at_least: 4) { IO.copy_stream(path, "#{path}.copy") } }

    assert_equal(data, File.binread("#{path}.copy"))
  end

  def test_writing
    reactor do
      assert_turns { assert_equal(data.bytesize, File.binwrite(path, data)) }
      assert_equal(data, File.binread(path))
      assert_turns { File.open(path, "wb") { |file| file.write(data) } }
      assert_equal(data, File.binread(path))
    end
  end

  # What the methods say to these options, and what is in the file then.
  def written(method, *given, **options)
    name = File.join(tempdir, "written")
    File.binwrite(name, "0123456789")
    said = begin
      File.public_send(method, name, "a\n", *given, **options)
    rescue StandardError => e
      [e.class, e.message]
    end
    [method, given, options, said, File.binread(name)]
  end

  def test_the_options_of_writing_are_ruby_s_own
    options = [{ mode: nil }, { mode: "ab" }, { mode: "wb" }, { mode: "rb+" }, { mode: "rb" }, { mode: "at" },
               { textmode: true }, { binmode: true }, { crlf_newline: true }, { encoding: "UTF-16LE" },
               { mode: "w:UTF-16LE" }, { open_args: ["r"] }, { open_args: ["ab"] }, { open_args: 5 },
               { open_args: nil }, { perm: 0o600 }]
    calls = %i[write binwrite].product(options, [[], [2]])
    own = calls.map { |method, given, offset| written(method, *offset, **given) }
    reactor do
      calls.zip(own) { |(method, given, offset), said| assert_equal(said, written(method, *offset, **given)) }
    end
  end

  def test_timers_are_due_meanwhile
    reactor do
      path
      reads = 0
      reading = seen = nil
      ticker = go { sleep(0.001) && (seen = reading) }
      while seen.nil? && (reads += 1) < 500
        reading = true
        File.binread(path)
        reading = false
      end
      ticker.value

      assert(seen, "the timer had to wait for the end of a read")
    end
  end

  def test_encodings_are_ruby_s_own
    own = [File.read(path), File.binread(path), File.read(path, encoding: "ISO-8859-1"), File.read(path, mode: "rb")]
    own.map! { |text| [text.encoding, text.bytesize] }
    reactor do
      seen = [File.read(path), File.binread(path), File.read(path, encoding: "ISO-8859-1"), File.read(path, mode: "rb")]

      assert_equal(own, seen.map { |text| [text.encoding, text.bytesize] })
      assert_equal(data[-10, 10], File.binread(path, 20, data.bytesize - 10))
      refute_predicate(File.read(path), :frozen?)
    end
  end

  def test_emptying_keeps_to_the_mode
    reactor do
      assert_raises(Errno::EEXIST) { File.open(path, "wx") }
      assert_equal(data.bytesize, File.size(path))
      File.open(path, "w+") { |file| file.write("a") && file.rewind && assert_equal("a", file.read) }
      File.binwrite(path, data)
      File.binwrite(path, "tail", data.bytesize - 4)

      assert_equal(data.bytesize, File.size(path))
      File.open(path, "w") { |file| assert_equal([0, path], [file.size, file.path]) }
    end
  end

  def test_closed_by_another_fiber
    heddle_only("a thread reads it in one system call")
    reactor do
      file = keep(File.open(path))
      reading = go { file.sysread(1 << 24) }
      file.close

      assert_kind_of(IOError, reading.failure)
    end
  end

  def test_cancelled
    heddle_only("a thread reads it in one system call")
    reactor do
      file = keep(File.open(path))
      reading = go { file.sysread(1 << 24) }
      reading.fiber.raise(ZeroDivisionError)

      assert_kind_of(ZeroDivisionError, reading.failure)
      file.sysseek(0)

      assert_equal(data, file.sysread(1 << 24))
    end
  end
end
