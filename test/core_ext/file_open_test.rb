# frozen_string_literal: true

require_relative "../test_helper"

# Opening a file holds up nobody; what the file's methods return is Ruby's own.
contract "FileOpen" do
  def fifo = File.join(tempdir, "fifo").tap { |path| File.mkfifo(path) }

  { "open" => ->(path) { File.open(path, &:read) }, "read" => ->(path) { File.read(path) },
    "binread" => ->(path) { File.binread(path) }, "readlines" => ->(path) { File.readlines(path).join },
    "new" => ->(path) { File.new(path).then { |file| file.read.tap { file.close } } } }.each do |name, reading|
    define_method("test_#{name}_of_a_fifo_waits_for_the_writer") do
      reactor do
        path = fifo
        text = assert_others_run do
          go { others_have_run && File.open(path, "w") { |file| file.write("text") } }
          reading.call(path)
        end

        assert_equal("text", text)
      end
    end
  end

  { "open" => ->(path) { File.open(path, "w") { |file| file.write("text") } },
    "write" => ->(path) { File.write(path, "text") },
    "binwrite" => ->(path) { File.binwrite(path, "text") } }.each do |name, writing|
    define_method("test_#{name}_of_a_fifo_waits_for_the_reader") do
      reactor do
        path = fifo
        reading = go { others_have_run && File.read(path) }
        assert_others_run { writing.call(path) }

        assert_equal("text", reading.value)
      end
    end
  end

  # Ruby looks at the number of arguments.
  {
    "a_descriptor" => ->(path) { File.new(IO.sysopen(path)) },
    "a_descriptor_and_a_mode" => ->(path) { File.new(IO.sysopen(path), "r") },
    "a_descriptor_and_an_option" => ->(path) { File.new(IO.sysopen(path), autoclose: true) },
    "for_fd" => ->(path) { File.for_fd(IO.sysopen(path), "r") },
    "a_mode_that_is_nil" => ->(path) { File.new(path, nil) },
    "permissions_that_are_nil" => ->(path) { File.new(path, "r", nil) },
    "a_mode_as_an_option" => ->(path) { File.new(path, mode: "r") },
    "flags" => ->(path) { File.new(path, File::RDONLY, 0o600) }
  }.each do |name, open|
    define_method("test_new_with_#{name}") do
      read = -> { open.call(__FILE__).then { |file| file.read(7).tap { file.close } } }

      assert_equal("# froze", reactor { read.call })
      assert_equal("# froze", read.call)
    end
  end

  def test_permissions
    path = File.join(tempdir, "file")
    [-> { File.open(path, "w", 0o640) { nil } }, -> { File.open(path, "w", perm: 0o640) { nil } }].each do |open|
      [-> { reactor { open.call } }, open].each do |run|
        run.call

        assert_equal(0o640, File.stat(path).mode & 0o777)
        File.unlink(path)
      end
    end
  end

  def test_more_fifos_than_the_pool_has_threads
    reactor do
      paths = Array.new(80) { fifo_in(tempdir) }
      reading = paths.map { |path| go { File.read(path) } }
      settle
      path = File.join(tempdir, "plain")
      File.write(path, "plain")

      assert_equal("plain", File.read(path))
      paths.each_with_index { |name, index| File.write(name, index.to_s) }

      assert_equal((0..79).map(&:to_s), reading.map(&:value))
    end
  end

  # The descriptor is the File's then, and is not closed a second time, when its number may be another file's.
  def test_a_fifo_struck_when_the_file_has_just_been_made
    heddle_only("the exception comes from a hook of Ruby's")
    file = nil
    raise_into = TracePoint.new(:c_return) do |point|
      next unless point.method_id == :initialize && point.self.is_a?(File)

      raise_into.disable
      file = point.self
      raise ZeroDivisionError
    end
    reactor do
      path = fifo

      File.open(path, File::RDWR | File::NONBLOCK) do
        assert_raises(ZeroDivisionError) { raise_into.enable(target_thread: Thread.current) { File.open(path, "w") } }
      end

      assert_predicate(file.stat, :pipe?)
      file.close
    end
  end

  def test_a_fifo_that_nobody_opens_is_cancelled
    heddle_only("the fiber is interrupted")
    reactor do
      path = fifo
      job = go { File.read(path) }
      settle
      job.fiber.raise(ZeroDivisionError)

      assert_instance_of(ZeroDivisionError, job.failure)
      reading = go { File.read(path) }
      File.write(path, "later")

      assert_equal("later", reading.value)
    end
  end

  # A cancel at the moment of success must not leave a descriptor that nobody owns.
  def test_opens_that_are_cancelled_leave_no_descriptor
    heddle_only("tasks")
    reactor do
      path = fifo
      before = open_descriptors
      150.times do
        tasks = %w[rb wb].map { |mode| Heddle.spawn { File.open(path, mode) { nil } } }
        sleep(rand * 0.0005)
        tasks.each { |task| task.cancel.wait }
      end
      close_files(path)

      assert_equal(before, open_descriptors)
    end
  end

  def test_arguments_and_results_are_those_of_ruby
    path = File.join(tempdir, "file")
    reactor do
      assert_equal(5, File.write(path, "a\r\nb\n"))
      assert_equal(2, File.write(path, "XY", 3, perm: 0o600))
      assert_equal("a\r\nXY", File.binread(path))
      assert_equal("\nX", File.read(path, 2, 2))
      assert_equal(["a\r\n", "XY"], File.readlines(path))
      assert_equal(%w[a XY], File.readlines(path, chomp: true))
      assert_equal(Encoding::ISO_8859_1, File.read(path, encoding: "iso-8859-1").encoding)
      assert_equal(1, File.binwrite(path, "!", 0))
      assert_equal("!", File.open(path, File::RDONLY) { |file| file.read(1) })
      assert_equal("!", File.new(path, mode: "r", external_encoding: "utf-8").tap { |file| keep(file) }.getc)
    end
  end

  def test_errors_are_those_of_ruby
    reactor do
      path = File.join(tempdir, "none")

      assert_match(/rb_sysopen - #{path}\z/, assert_raises(Errno::ENOENT) { File.read(path) }.message)
      assert_raises(Errno::EISDIR) { File.read(tempdir) }
      assert_raises(Errno::EEXIST) { 2.times { keep(File.open(path, "wx")) } }
      assert_raises(ArgumentError) { File.read("a\0b") }
      assert_raises(ArgumentError) { File.open(path, "q") }
      assert_raises(TypeError) { File.read(nil) }
    end
  end

  private

  # What a task has opened that was cancelled just then.
  def close_files(path)
    ObjectSpace.each_object(File) do |file|
      file.close if !file.closed? && file.path == path
    rescue IOError
      next # "uninitialized stream": it was never opened
    end
  end

  def open_descriptors = Dir.children("/proc/self/fd").size

  def fifo_in(folder)
    path = File.join(folder, "fifo#{@fifos = (@fifos || 0) + 1}")
    File.mkfifo(path)
    path
  end
end
