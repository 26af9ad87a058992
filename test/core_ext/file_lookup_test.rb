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
    end
  end
end
