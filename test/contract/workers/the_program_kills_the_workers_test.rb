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

  # The thread is killed before it begins what it was woken for.
  def test_an_operation_that_a_killed_thread_has_not_begun
    reactor do
      operate { :done }
      wait_until("the end of its work") { threads.all?(&:stop?) }
      job = go { operate { :done } }
      threads.each(&:kill)

      assert_equal(:done, job.value)
    end
  end

  # An operation that lasts has a thread of its own, which does not do the others.
  def test_beside_an_operation_that_lasts
    lasts = Thread::Queue.new
    reactor do
      operate { :done }
      began = Thread::Queue.new
      go { operate(lasting: true) { (began << Thread.current) && lasts.pop } }
      lasting = began.pop
      operate { :done }
      wait_until("the end of its work") { threads.all?(&:stop?) }
      job = go { operate { :done } }
      (threads - [lasting]).each(&:kill)

      assert_equal(:done, job.value)
    ensure
      lasts << true
    end
  end

  private

  def operate(**, &) = Heddle.const_get(:PoolThread).run(**, &)
  def threads = Thread.list.select { |thread| thread.name == "heddle blocking pool" }
  def kill_threads = threads.each { |thread| thread.kill.join }
end
