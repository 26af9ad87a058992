# frozen_string_literal: true

require_relative "../test_helper"

# A lock holds up nobody but the fiber that waits for it.
contract "Flock" do
  def locked_file
    path = File.join(tempdir, "lock")
    owner = keep(File.open(path, "w"))

    assert_equal(0, owner.flock(File::LOCK_EX))
    [path, owner]
  end

  def lock(path) = File.open(path) { |file| file.flock(File::LOCK_EX) }

  def test_flock_waits_for_the_owner
    reactor do
      path, owner = locked_file
      result = assert_others_run do
        go { others_have_run && owner.flock(File::LOCK_UN) }
        lock(path)
      end

      assert_equal(0, result)
    end
  end

  def test_the_owner_works_with_files_while_a_hundred_wait
    reactor do
      path, owner = locked_file
      waiting = Array.new(100) { go { lock(path) } }
      settle

      assert_equal("", File.read(path))
      assert_equal(4, owner.write("text"))
      owner.fsync
      owner.flock(File::LOCK_UN)

      assert_equal([0], waiting.map(&:value).uniq)
      assert_equal("text", File.read(path))
    end
  end

  def test_flock_that_does_not_wait
    reactor do
      path, owner = locked_file

      File.open(path) do |file|
        refute(file.flock(File::LOCK_EX | File::LOCK_NB))
        owner.flock(File::LOCK_UN)

        assert_equal(0, file.flock(File::LOCK_EX | File::LOCK_NB))
        assert_equal(0, file.flock(File::LOCK_UN))
        assert_raises(TypeError) { file.flock("x") }
      end
    end
  end

  def test_flock_is_cancelled
    heddle_only("the fiber is interrupted")
    reactor do
      path, owner = locked_file
      job = go { lock(path) }
      sleep(0.02)
      job.fiber.raise(ZeroDivisionError)

      assert_instance_of(ZeroDivisionError, job.failure)
      owner.flock(File::LOCK_UN)

      assert_equal(0, lock(path))
    end
  end
end
