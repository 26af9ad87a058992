# frozen_string_literal: true

require_relative "../../test_helper"

# The threads that do blocking operations, when the program kills them: test frameworks end every thread that they have
# not started.
contract "BlockingPool" do
  heddle_only "the pool"

  def test_killed_threads_are_replaced
    reactor do
      2.times do
        assert_equal(:done, operate { :done })
        kill_threads
      end
    end
  end

  def test_the_operation_of_a_killed_thread_fails
    reactor do
      begun = Thread::Queue.new
      job = go { operate { begun << sleep } }
      go { operate { begun << true } }
      begun.pop
      kill_threads

      assert_instance_of(ThreadError, job.failure)
      assert_equal(:done, operate { :done })
    end
  end

  private

  def operate(&) = Heddle.const_get(:PoolThread).run(&)

  def kill_threads
    Thread.list.select { |thread| thread.name == "heddle blocking pool" }.each { |thread| thread.kill.join }
  end
end
