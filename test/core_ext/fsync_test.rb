# frozen_string_literal: true

require_relative "../test_helper"

# IO#fsync and #fdatasync, which a thread of the pool does.
contract "Fsync" do
  def test_they_are_done_and_refused_as_by_ruby
    reactor do
      file = keep(File.open(File.join(tempdir, "file"), "w"))
      file.write("x")

      assert_equal([0, 0], [file.fsync, file.fdatasync])
      file.close
      assert_raises(IOError) { file.fsync }
    end
  end

  def test_a_thread_of_the_pool_does_it
    heddle_only("the pool is Heddle's")
    reactor do
      file = keep(File.open(File.join(tempdir, "file"), "w"))
      ran = false
      go { ran = true }
      [file.fsync, file.fdatasync]

      assert(ran)
    end
  end
end
