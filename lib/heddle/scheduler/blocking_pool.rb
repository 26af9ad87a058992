# frozen_string_literal: true

module Heddle
  class Scheduler
    # A few Ruby threads for blocking operations that only a Ruby thread may run. One pool a process (and a Ractor);
    # threads are started when there is work and none is idle, and end when they have had none for a while.
    module BlockingPool
      # How many operations run at the same time; the others wait their turn.
      MAX_THREADS = 8
      # Seconds without work after which a thread ends.
      IDLE_TIMEOUT = 2.0

      # One operation: its result or error, and a queue that tells the waiting fiber.
      class Job
        def initialize(work)
          @work = work
          @done = Thread::Queue.new
        end

        # On the pool's thread.
        def run
          @result = @work.call
        rescue Exception => e # rubocop:disable Lint/RescueException -- handed to the fiber that waits
          @error = e
        ensure
          @done.close
        end

        # On the fiber. An exception that arrives meanwhile waits until the operation is over: it works on memory
        # of the caller.
        def wait
          interruption = nil
          until @done.closed?
            begin
              @done.pop
            rescue Exception => e # rubocop:disable Lint/RescueException -- raised below
              interruption ||= e
            end
          end
          raise interruption if interruption
          raise @error if @error

          @result
        end
      end

      # The queue and threads of one process.
      class Pool
        def initialize
          @jobs = Thread::Queue.new
          @threads = 0
          @pid = Process.pid
        end

        attr_reader :pid

        def run(work)
          job = Job.new(work)
          @jobs << job
          start_thread if @jobs.num_waiting.zero? && @threads < MAX_THREADS
          job.wait
        end

        private

        def start_thread
          @threads += 1
          thread = Thread.new do
            while (job = @jobs.pop(timeout: IDLE_TIMEOUT))
              job.run
            end
          ensure
            @threads -= 1
          end
          thread.name = "heddle blocking pool"
        end
      end

      module_function

      # @param work [#call]
      # @return [Object]
      def run(work)
        pool = Ractor.current[:heddle_blocking_pool]
        pool = Ractor.current[:heddle_blocking_pool] = Pool.new unless pool && pool.pid == Process.pid
        pool.run(work)
      end
    end
    private_constant :BlockingPool
  end
end
