# frozen_string_literal: true

require_relative "blocking_job"

module Heddle
  using Internal

  class Scheduler
    # Ruby threads for blocking operations that only a Ruby thread may run. One pool a process (and a Ractor); threads
    # are started when there is work and none is idle, and end when they have had none for a while.
    class BlockingPool
      # How many operations run at the same time; the others wait their turn. Many, for an operation may wait for
      # another one (both ends of a FIFO that are being opened).
      MAX_THREADS = 64
      # Seconds without work after which a thread ends.
      IDLE_TIMEOUT = 2.0
      THREAD_NAME = "heddle blocking pool"

      # @return [BlockingPool] the pool of this process and Ractor
      def self.current
        pool = Ractor.current[:heddle_blocking_pool]
        return pool if pool && pool.pid == Process.pid

        Ractor.current[:heddle_blocking_pool] = new
      end

      # @return [Boolean] is there no operation under way?
      def self.idle?
        Ractor.current[:heddle_blocking_pool]&.busy.to_i.zero?
      end

      # @return [Array(Integer, Integer)] the threads, and the operations that wait for one
      def self.counts
        pool = Ractor.current[:heddle_blocking_pool]
        pool&.pid == Process.pid ? pool.counts : [0, 0]
      end

      # How many levels of a method a fiber must have room for that waits for an operation.
      ROOM = 64
      private_constant :ROOM

      # Raises the SystemStackError of a recursion before an operation begins. Later nothing may end the wait, for the
      # operation works on memory of the fiber: where there is no room for the wait itself, it would fail for ever.
      # @raise [SystemStackError]
      def self.need_room
        Scheduler.need_stack
        room_for(ROOM)
      end

      def self.room_for(levels) = levels.zero? || room_for(levels - 1)
      private_class_method :room_for

      # @return [Integer] how many operations are under way
      attr_reader :busy

      # @return [Array(Integer, Integer)] see .counts
      def counts = [@threads, [@busy - @threads, 0].max]

      # @return [Integer] the process whose threads these are
      attr_reader :pid

      def initialize
        @jobs = Thread::Queue.new
        @lock = Thread::Mutex.new
        @threads = @busy = @lasting = 0
        @pid = Process.pid
      end

      # Runs an operation on one of the threads while the calling fiber waits; inline when no thread can be had.
      #
      # @param work [#call]
      # @param lasting [Boolean] it may last for ever (a lock, a FIFO): the others have as many threads as without it
      # @param attempt [#call, nil] does the same without waiting, or returns false: called now and then when no thread
      #   can be had
      # @param options [Hash] see BlockingJob
      # @return [Object] what it returns
      def run(work, lasting: false, attempt: nil, **options)
        BlockingPool.need_room
        job = BlockingJob.new(work, **options)
        submitted = @lock.synchronize { submit(job, lasting) }
        return run_here(work, attempt) unless submitted

        job.wait
      ensure
        @lock.synchronize { @lasting -= 1 } if lasting && submitted
      end

      # The longest pause between two attempts.
      NAP_MAX = 0.02
      private_constant :NAP_MAX

      private

      # When no thread can be had, those that there are still do the work; but one whose operation may last for ever
      # does not count. False: there is none.
      def submit(job, lasting)
        limit = MAX_THREADS + @lasting + (lasting ? 1 : 0)
        start_thread if @busy >= @threads && @threads < limit
        return false if @busy >= @threads && @threads <= @lasting

        @busy += 1
        @lasting += 1 if lasting
        @jobs << job
        true
      end

      def start_thread
        return unless Scheduler.thread_can_start?

        thread = Thread.new { Thread.handle_interrupt(BlockingJob::Stop => :never) { serve } }
        thread.name = THREAD_NAME
        @threads += 1
      rescue ThreadError
        nil # the last one was taken meanwhile
      end

      def run_here(work, attempt)
        return Fiber.blocking { work.call } unless attempt

        nap = 0.0005
        until (value = attempt.call)
          sleep(nap)
          nap = [nap * 2, NAP_MAX].min
        end
        value
      end

      def serve
        nil while perform || !leave?
        left = true
      ensure
        @lock.synchronize { @threads -= 1 } unless left # the program has killed it
      end

      # Does the next job; false when there was none for a while.
      def perform
        job = @jobs.pop(timeout: IDLE_TIMEOUT) or return false
        job.run
        true
      ensure
        @lock.synchronize { @busy -= 1 } if job
      end

      # Unless work is on its way.
      def leave?
        @lock.synchronize { (@busy < @threads).tap { |idle| @threads -= 1 if idle } }
      end
    end
    private_constant :BlockingPool
  end
end
