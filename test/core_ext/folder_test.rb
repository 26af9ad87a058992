# frozen_string_literal: true

require_relative "../test_helper"
require "support/plain_ruby"

# Dir.foreach and its kin list some entries at a time, and call nothing that a program may have overridden.
contract "Folder" do
  include TestSupport::PlainRuby

  %i[children entries empty? each_child foreach glob exist?].each do |name|
    define_method("test_too_few_and_too_many_arguments_of_#{name.to_s.delete("?")}") do
      block = proc {} if %i[each_child foreach].include?(name)
      expected, seen = in_both do
        [[], [1, 2, 3]].map { |arguments| outcome { Dir.public_send(name, *arguments, &block) } }
      end

      assert_equal(expected, seen)
    end
  end

  def folder(count)
    tempdir.tap { |path| count.times { |i| File.write(File.join(path, "file#{i}"), "") } }
  end

  # How often Dir#read is called, by whichever thread.
  def reads(&)
    count = 0
    trace = TracePoint.new(:c_call) { |call| count += 1 if call.method_id == :read && call.self.is_a?(Dir) }
    trace.enable(target_thread: nil, &)
    count
  end

  def test_the_first_entry_does_not_wait_for_the_last
    heddle_only("Ruby reads them one by one")
    path = folder(700)
    reactor do
      Dir.open(path) do |dir|
        uses = [-> { Dir.each_child(path).first }, -> { Dir.foreach(path).first }, -> { dir.each.first },
                -> { dir.each_child.first }]

        uses.each { |use| assert_includes(1..600, reads(&use)) }
      end
    end
  end

  def test_all_entries
    [0, 1, 510, 511, 512, 513, 1030].each do |count|
      path = folder(count)
      names = Dir.children(path)
      reactor do
        assert_equal(names, Dir.each_child(path).to_a)
        assert_equal(Dir.entries(path), Dir.foreach(path).to_a)
        Dir.open(path) do |dir|
          assert_equal(names, dir.each_child.to_a)
          assert_equal(Dir.entries(path), dir.each.to_a)
        end
      end
    end
  end

  def test_a_block_that_breaks_off
    path = folder(1100)
    reactor do
      Dir.open(path) do |dir|
        names = dir.entries
        [0, 1, 510, 511, 512, 513, 1023, 1024, 1100].each do |index|
          dir.each_with_index { |_, i| break if i == index }

          assert_equal(names[index + 1], dir.read, "after #{index}")
        end
      end
    end
  end

  def test_files_that_go_and_come_meanwhile
    path = folder(600)
    reactor do
      Dir.each_child(path) { |name| File.unlink(File.join(path, name)) }

      assert_empty(Dir.children(path))
      assert_nil(Dir.each_child(path) { flunk })
    end
  end

  def test_a_dir_that_is_closed_meanwhile
    path = folder(600)
    reactor do
      dir = Dir.new(path)
      dir.each.any? { dir.close || true }
      assert_raises(IOError) { dir.each { nil } }
      dir = Dir.new(path)
      assert_raises(ZeroDivisionError) { dir.each { dir.close || (1 / 0) } }
    end
  end

  def test_nothing_overridden_is_called
    path = folder(3)
    refuse = proc { |*| raise "not to be called" }
    own = Class.new(Dir)
    %i[entries children].each { |name| own.define_singleton_method(name, &refuse) }
    %i[read tell pos seek rewind close children each_child entries].each { |name| own.define_method(name, &refuse) }
    reactor do
      assert_equal(5, own.foreach(path).to_a.size)
      assert_equal(3, own.each_child(path).to_a.size)
      dir = own.new(path)

      assert_equal(5, dir.each.to_a.size)
      Dir.instance_method(:close).bind_call(dir)
    end
  end

  def test_wrong_arguments
    reactor do
      assert_raises(ArgumentError) { Dir.each_child { nil } }
      assert_raises(TypeError) { Dir.foreach(1) { nil } }
      assert_raises(ArgumentError) { Dir.children("a\0b") }
      assert_raises(Errno::ENOENT) { Dir.each_child("/none") { nil } }
      assert_raises(ArgumentError) { Dir.glob }
      assert_empty(Dir[])
    end
  end

  def test_cancelled
    heddle_only("a task")
    path = folder(700)
    reactor do
      before = Dir.children("/proc/self/fd").size
      20.times do
        task = Heddle.spawn { Dir.foreach(path) { nil } }
        task.cancel
        task.wait
      end

      assert_operator(Dir.children("/proc/self/fd").size, :<=, before + 1)
    end
  end
end
