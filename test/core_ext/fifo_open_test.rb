# frozen_string_literal: true

require "pathname"
require_relative "../test_helper"

# Whatever opens a FIFO by its path waits for the other end in its own fiber only.
contract "FifoOpen" do
  def fifo = @fifo ||= File.join(tempdir, "fifo").tap { |path| File.mkfifo(path) }

  {
    "sysopen" => ->(path) { IO.for_fd(IO.sysopen(path)).then { |io| io.read.tap { io.close } } },
    "foreach" => ->(path) { File.foreach(path).to_a.join },
    "foreach_with_a_block" => ->(path) { [].tap { |list| File.foreach(path, chomp: true) { list << "#{_1}\n" } }.join },
    "each_line" => ->(path) { [].tap { |list| Pathname(path).each_line { |line| list << line } }.join },
    "reopen" => ->(path) { File.open(File::NULL) { |file| file.reopen(path).read } },
    "reopen_with_a_mode" => ->(path) { File.open(File::NULL, "w") { |file| file.reopen(path, "r").read } }
  }.each do |name, reading|
    define_method("test_#{name}") do
      path = fifo
      reactor do
        text = assert_others_run do
          go { others_have_run && File.open(path, "w") { |file| file.write("one\ntwo\n") } }
          reading.call(path)
        end

        assert_equal("one\ntwo\n", text)
      end
    end
  end

  def test_what_reopen_keeps
    path = fifo
    reactor do
      go { File.write(path, "text") }
      io = keep(IO.for_fd(IO.sysopen(File::NULL)))

      assert_same(io, io.reopen(path))
      assert_equal([IO, path, "text"], [io.class, io.path, io.read])
      assert_raises(Errno::ENOENT) { io.reopen("#{path}.not") }
    end
  end
end
