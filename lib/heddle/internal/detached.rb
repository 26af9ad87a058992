# frozen_string_literal: true

module Heddle
  # The tasks of Heddle.detach. They share a run on a thread of its own, which ends with the last of them. The next task
  # starts another run.
  module Detached
    @lock = Thread::Mutex.new

    class << self
      # @return [Heddle::Task]
      def spawn(name, block)
        work = lambda do
          Task.match_apart(block)
          Scope.open(&block) # a task that it spawns ends no other detached task
        end
        @lock.synchronize { spawn_in_run(name, work) || spawn_in_new_run(name, work) }
      end

      # @see Heddle.drain
      def drain(grace)
        run = run_of_process or return
        run.wait(grace) || run.stop
      end

      private

      # The run of the parent of a fork does not count.
      def run_of_process = (@run if @process == Process.pid)

      # @return [Heddle::Task, nil] nil: there is no run, or its last task has just ended
      def spawn_in_run(name, work)
        run_of_process&.spawn(name:, isolated: true, &work)
      rescue Error
        nil
      end

      def spawn_in_new_run(name, work)
        at_exit { drain(Scope::GRACE) } unless @process # the child of a fork has this block, too
        gate = Thread::Queue.new
        @run = Run.new("heddle detached", {}, -> { gate.pop })
        @process = Process.pid
        @run.spawn(name:, isolated: true, &work)
      ensure
        gate&.close
      end
    end
  end
  private_constant :Detached
end
