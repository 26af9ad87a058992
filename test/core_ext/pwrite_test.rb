# frozen_string_literal: true

require_relative "../test_helper"

# IO#pwrite from fibers.
contract "Pwrite" do
  def test_many_fibers_write_to_one_file
    path = File.join(tempdir, "file")
    reactor do
      File.open(path, "w+") do |file|
        jobs = Array.new(50) { |i| go { file.pwrite(i.to_s.rjust(4), i * 4) } }
        GC.start

        assert_equal([4], jobs.map(&:value).uniq)
        assert_equal(Array.new(50) { |i| i.to_s.rjust(4) }.join, file.read)
      end
    end
  end

  def test_arguments_are_refused_as_by_ruby
    reactor do
      File.open(File.join(tempdir, "file"), "w+") do |file|
        assert_equal(2, file.pwrite(:ab, 1))
        assert_raises(TypeError) { file.pwrite("x", "x") }
        assert_raises(Errno::EINVAL) { file.pwrite("x", -1) }
      end
      assert_raises(IOError) { File.open(__FILE__) { |file| file.pwrite("x", 0) } }
    end
  end
end
