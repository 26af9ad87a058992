# frozen_string_literal: true

require "tmpdir"

require_relative "../../test_helper"

# Ruby calls finalizers where a signal's handler could run: in every thread, and nobody may lock a Mutex in one.
contract "Finalizers" do
  heddle_only "what Heddle's methods do in a finalizer"

  def run(*, &block) = block ? Thread.new { Heddle.run(backend: backend, &block) }.value : super

  # What Tempfile does, for one.
  def test_files_in_a_thread
    Dir.mktmpdir do |folder|
      path = File.join(folder, "file")
      outcomes = run do
        finalize do
          File.write(path, "x")
          File.open(path, "r+") { |file| file.flock(File::LOCK_EX) && file.fsync }
          File.rename(path, "#{path}.new")
          [Dir.children(folder), File.unlink("#{path}.new")]
        end
      end

      assert_equal([[["file.new"], 1]], outcomes.uniq)
    end
  end

  def test_an_offload_in_a_thread
    assert_equal([:done], run { finalize { Heddle.offload { :done } } }.uniq)
  end

  # Of the fibers that are made there Ruby says for ever that they are in the handler. So Heddle makes them elsewhere.
  def test_tasks_in_a_thread
    mutex = Thread::Mutex.new
    outcomes = run do
      tasks = finalize { Heddle.spawn { sleep(0.001) && mutex.synchronize { :locked } } }
      tasks.map { |task| task.is_a?(Heddle::Task) ? task.value : task }
    end

    assert_equal([:locked], outcomes.uniq)
  end

  private

  # What the block has returned, in finalizers of objects that tasks have made.
  def finalize(&block)
    outcomes = []
    finalizer = finalizer_of(outcomes, block)
    until outcomes.size >= 20
      make_garbage(finalizer)
      Heddle.spawn { 200.times { Array.new(100) { "x" * 100 } } }.wait
    end
    outcomes
  end

  # (GC.start calls finalizers in another way.)
  def make_garbage(finalizer)
    20.times { ObjectSpace.define_finalizer(Object.new, finalizer) }
  end

  def finalizer_of(outcomes, block)
    mutex = Thread::Mutex.new
    proc do
      mutex.synchronize { nil }
    rescue ThreadError
      outcomes << begin
        block.call
      rescue Exception => e
        e
      end
    end
  end
end
