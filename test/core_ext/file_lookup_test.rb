# frozen_string_literal: true

require "pathname"
require_relative "../test_helper"

# Looking files up and listing folders gives what Ruby gives, and on a thread of the pool where that may take time.
contract "FileLookup" do
  def folder
    @folder ||= tempdir.tap do |path|
      File.write(File.join(path, "a.txt"), "aa")
      File.write(File.join(path, "b.rb"), "")
      Dir.mkdir(File.join(path, "sub"))
      File.symlink("a.txt", File.join(path, "link"))
    end
  end

  def test_looking_up
    path = File.join(folder, "a.txt")
    reactor do
      assert_equal([2, true, false, "file", true], [File.size(path), File.file?(path), File.directory?(path),
                                                    File.ftype(path), File.exist?(Pathname(path))])
      assert_equal(2, File.stat(path).size)
      assert_predicate(File.lstat(File.join(folder, "link")), :symlink?)
      assert_equal(File.mtime(path), File.open(path, &:mtime))
      refute_path_exists(File.join(folder, "none"))
      assert_raises(Errno::ENOENT) { File.stat(File.join(folder, "none")) }
      assert_raises(TypeError) { File.stat(nil) }
      assert_raises(ArgumentError) { File.exist?("a\0b") }
      File.open(path) { |file| assert_path_exists(file) }
    end
  end

  def test_listing
    reactor do
      names = %w[a.txt b.rb link sub]
      seen = []

      assert_equal(names, Dir.children(folder).sort)
      assert_equal([".", "..", *names], Dir.entries(folder).sort)
      assert_nil(Dir.each_child(folder) { |name| seen << name })
      assert_equal(names, seen.sort)
      assert_equal(names, Dir.each_child(folder).sort)
      assert_equal([File.join(folder, "b.rb")], Dir.glob(File.join(folder, "*.rb")))
      assert_equal(%w[a.txt], Dir.glob("*.txt", base: folder))
      refute(Dir.empty?(folder))
      assert_empty(Dir.children(File.join(folder, "sub")))
      assert_raises(Errno::ENOENT) { Dir.children(File.join(folder, "none")) }
    end
  end

  def test_blocks_run_in_the_fiber
    reactor do
      fiber = Fiber.current

      Dir.each_child(folder) { assert_same(fiber, Fiber.current) }
      Dir.glob(File.join(folder, "*")) { assert_same(fiber, Fiber.current) }
      Dir.open(folder) { |dir| dir.each { assert_same(fiber, Fiber.current) } }
    end
  end

  def test_an_open_dir
    reactor do
      Dir.open(folder) do |dir|
        names = dir.each.to_a

        assert_equal([".", "..", "a.txt", "b.rb", "link", "sub"], names.sort)
        assert_same(dir, dir.rewind.each { nil })
        assert_nil(dir.read)
        assert_equal(names[1], dir.rewind.each_with_index { |name, index| break name if index == 1 })
        assert_equal(names[2], dir.read)
        assert_equal(names - %w[. ..], dir.each_child.to_a)
        assert_equal(names - %w[. ..], dir.children)
        assert_raises(ZeroDivisionError) { dir.each { |name| name == names[1] && raise(ZeroDivisionError) } }
        assert_equal(names[2], dir.read)
      end
    end
  end

  # Ruby 3.4+ hands every system call to a worker, which takes 60 times what the call itself does.
  def test_listing_is_one_job
    heddle_only("a method of Heddle's")
    20.times { |i| Dir.mkdir(File.join(folder, i.to_s)) }
    calls = 0
    hook = TracePoint.new(:call) { |point| calls += 1 if point.method_id == :offload }
    reactor do
      hook.enable(target_thread: Thread.current) do
        assert_equal(24, Dir.glob("**/*", base: folder).size)
        assert_equal(24, Dir[File.join(folder, "**/*")].size)
        assert_equal(24, Dir.children(folder).size)
        assert_equal(24, Dir.each_child(folder).to_a.size)
        assert_equal(26, Dir.foreach(folder).to_a.size)
        assert_equal(26, Dir.entries(folder).size)
        assert_equal(24, Pathname(folder).children.size)
        assert_equal([true, true], [Dir.exist?(folder), File.exist?(folder)])
      end
    end

    assert_equal(7, calls)
  end
end
