# frozen_string_literal: true

require "pathname"
require_relative "../../test_helper"

# What the contract below is about.
module CallerCases
  # Takes a path that is no String.
  TAKERS = {
    "File.stat" => ->(path) { File.stat(path) },
    "File.lstat" => ->(path) { File.lstat(path) },
    "File.exist?" => ->(path) { File.exist?(path) },
    "File.size" => ->(path) { File.size(path) },
    "File.mtime" => ->(path) { File.mtime(path) },
    "File.ftype" => ->(path) { File.ftype(path) },
    "File.open" => ->(path) { File.open(path) { nil } },
    "File.new" => ->(path) { File.new(path, "r", 0o600).close },
    "File.read" => ->(path) { File.read(path) },
    "File.binread" => ->(path) { File.binread(path) },
    "File.readlines" => ->(path) { File.readlines(path) },
    "File.foreach" => ->(path) { File.foreach(path) { nil } },
    "File.write" => ->(path) { File.write(path, "x") },
    "File.binwrite" => ->(path) { File.binwrite(path, "x") },
    "IO.sysopen" => ->(path) { IO.for_fd(IO.sysopen(path)).close },
    "IO#reopen" => ->(path) { IO.pipe.each { |io| io.reopen(path, "r+").close } },
    "Dir.exist?" => ->(path) { Dir.exist?(path) },
    "Dir.children" => ->(path) { Dir.children(path) },
    "Dir.entries" => ->(path) { Dir.entries(path) },
    "Dir.empty?" => ->(path) { Dir.empty?(path) },
    "Dir.each_child" => ->(path) { Dir.each_child(path) { nil } },
    "Dir.foreach" => ->(path) { Dir.foreach(path) { nil } },
    "Dir.glob" => ->(path) { Dir.glob(path) },
    "Dir.glob(array)" => ->(path) { Dir.glob([path, path]) },
    "Dir.glob(base:)" => ->(path) { Dir.glob("*", base: path) },
    "Dir.[]" => ->(path) { Dir[path, path] },
    "Dir.[](base:)" => ->(path) { Dir["*", base: path] }
  }.freeze

  # Notes where it is asked for its name.
  class Asked
    attr_reader :places

    def initialize(path)
      @path = path
      @places = []
    end

    def to_path
      @places << [Thread.current, Fiber.current, Fiber[:request], Thread.current[:local]]
      @path
    end
  end

  # Each raises.
  FAILURES = {
    "Dir.children" => -> { Dir.children("/none") },
    "Dir.entries" => -> { Dir.entries("/none") },
    "Dir.empty?" => -> { Dir.empty?("/none\0") },
    "Dir.each_child" => -> { Dir.each_child("/none") { nil } },
    "Dir.foreach" => -> { Dir.foreach("/none") { nil } },
    "Dir.glob" => -> { Dir.glob("*", base: "a\0b") },
    "File.stat" => -> { File.stat("/none") },
    "File.stat by a thread" => -> { File.stat("/proc/self/none") },
    "File.open" => -> { File.open("/none") },
    "File.read" => -> { File.read("/none") },
    "IO#fsync" => -> { IO.pipe.each(&:close).last.fsync },
    "IO#fdatasync" => -> { IO.pipe.each(&:close).last.fdatasync },
    "File#flock" => -> { File.new(__FILE__).tap(&:close).flock(File::LOCK_EX) },
    "File.unlink" => -> { File.unlink("/none") },
    "Socket.getnameinfo" => -> { Socket.getnameinfo(["AF_INET", 1, "300.300.300.300"]) }
  }.freeze
end

# A call on a thread of the pool looks as if the caller had made it: the arguments are converted there, and its errors
# name the place of the call.
contract "Caller" do
  # How often Ruby asks for the name.
  def times_by_ruby(use, path)
    Thread.new { CallerCases::Asked.new(path).tap { |asked| use.call(asked) }.places.size }.value
  end

  CallerCases::TAKERS.each do |name, use|
    define_method(:"test_the_path_of_#{name}") do
      file = File.join(tempdir, "file")
      File.write(file, "text")
      path = name.start_with?("Dir") ? tempdir : file
      times = times_by_ruby(use, path)
      reactor do
        Fiber[:request] = "request"
        Thread.current[:local] = "local"
        asked = CallerCases::Asked.new(path)
        use.call(asked)

        assert_equal([[Thread.current, Fiber.current, "request", "local"]] * times, asked.places)
      end
    end
  end

  CallerCases::FAILURES.each do |name, failing|
    define_method(:"test_the_backtrace_of_#{name}") do
      plain = assert_raises(StandardError) { failing.call }
      error = reactor { assert_raises(StandardError) { failing.call } }
      file, line = failing.source_location

      assert_equal([plain.class, plain.message], [error.class, error.message])
      assert_includes(error.backtrace_locations.map { |place| [place.path, place.lineno] }, [file, line])
      refute_match(/in '.*(perform|serve)'|in `(perform|serve)'/, error.backtrace.join("\n"))
    end
  end

  # All of them go to the pool there.
  def test_the_backtrace_from_the_pool
    heddle_only("the pool")
    reactor do
      error = assert_raises(Errno::ENOENT) { Heddle.const_get(:PoolThread).run { File.stat("/none") } }

      assert_includes(error.backtrace_locations.map(&:path), __FILE__)
      assert_nil(error.cause)
    end
  end
end
