# frozen_string_literal: true

require_relative "blocking_job"

module Heddle
  using Internal

  class Scheduler
    # Ruby threads for blocking operations that only a Ruby thread may run. Threads are started when there is work and
    # no thread is idle, and end when they have had no work for a while.
    #
    # A process (and a Ractor) has one pool for operations that tasks offload; another for operations that are offloaded
    # inside of these (a block of Heddle.offload may call Heddle.run), and so on. An operation waits only for operations
    # further inside, so it never waits for a thread that waits for it, however many exist. Each pool has its own limit.
    class BlockingPool
      # The number of operations that run at the same time; the others wait their turn. It is large because an operation
      # may wait for another one (both ends of a FIFO that are being opened).
      MAX_THREADS = 64
      # Seconds without work after which a thread ends.
      IDLE_TIMEOUT = 2.0
      THREAD_NAME = "heddle blocking pool"

      class << self
        # @return [BlockingPool] the pool of this process and Ractor for operations that are offloaded here
        def current
          depth = Fiber[:heddle_offloads].to_i
          all[depth] ||= new
        end

        # @return [Hash{Symbol => Object}] the Fiber storage for a block that is offloaded here
        def storage_inside
          { **(Fiber.current.storage || {}), heddle_offloads: Fiber[:heddle_offloads].to_i + 1 }
        end

        # @return [Boolean] is no operation under way?
        def idle? = all.each_value.sum(&:busy).zero?

        # @return [Array(Integer, Integer)] the number of threads, and of operations that wait for a thread
        def counts = all.each_value.map(&:counts).transpose.map(&:sum).then { |sums| sums.empty? ? [0, 0] : sums }

        private

        # The pools, by the number of operations around them. The pools of the parent of a fork belong to the parent.
        def all
          pid, pools = Ractor.current[:heddle_blocking_pools]
          pid == Process.pid ? pools : (Ractor.current[:heddle_blocking_pools] = [Process.pid, {}]).last
        end
      end

      # The number of method calls for which a fiber needs room on its stack when it waits for an operation.
      ROOM = 64
      private_constant :ROOM

      # Raises the SystemStackError of a recursion before an operation begins. Later nothing may end the wait, because
      # the operation works on memory of the fiber: without room for the wait itself, it would fail for ever.
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

      def initialize
        @line = {}.compare_by_identity # the jobs that have not begun, the first one first
        @came = Thread::ConditionVariable.new
        @lock = Thread::Mutex.new
        @threads = @busy = @lasting = 0
      end

      # Runs an operation on one of the threads while the calling fiber waits; inline when no thread can be started.
      #
      # @param work [#call]
      # @param lasting [Boolean] it may last for ever (a lock, a FIFO): it does not reduce the number of threads for the
      #   others
      # @param attempt [#call, nil] tries the operation without waiting, or returns false: called now and then when no
      #   thread can be started
      # @param options [Hash] see BlockingJob
      # @return [Object] the result of the operation
      def run(work, lasting: false, attempt: nil, **options)
        BlockingPool.need_room
        loop do
          job = BlockingJob.new(work, **options)
          return run_here(work, attempt) unless @lock.synchronize { submit(job, lasting) }

          result = wait_for(job, lasting)
          return result unless job.sent_back?
        end
      end

      # Takes an operation that is no longer wanted out of the line.
      #
      # @return [Boolean] true if it had not begun
      def leave_line(job)
        @lock.synchronize do
          left = @line.delete(job)
          @busy -= 1 if left
          left ? true : false
        end
      end

      # The longest pause between two attempts.
      NAP_MAX = 0.02
      private_constant :NAP_MAX

      private

      # Hands a job to a thread. When no thread can be started, the existing ones still do the work; but a thread whose
      # operation may last for ever does not count. Returns false if no thread can do it.
      def wait_for(job, lasting)
        job.wait(self)
      ensure
        @lock.synchronize { @lasting -= 1 } if lasting
      end

      def submit(job, lasting)
        limit = MAX_THREADS + @lasting + (lasting ? 1 : 0)
        start_thread if @busy >= @threads && @threads < limit
        return false if @busy >= @threads && @threads <= @lasting

        @busy += 1
        @lasting += 1 if lasting
        @line[job] = true
        @came.signal
        true
      end

      def start_thread
        return unless Scheduler.thread_can_start?

        thread = Thread.new { Thread.handle_interrupt(BlockingJob::Stop => :never) { serve } }
        thread.name = THREAD_NAME
        @threads += 1
      rescue ThreadError
        nil # another thread has taken the last job
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
        killed unless left
      end

      # Does the next job; false when no job has arrived for a while.
      def perform
        job = begun = nil
        @lock.synchronize do
          @came.wait(@lock, IDLE_TIMEOUT) if @line.empty?
          job, = @line.shift
        end
        return false unless job

        begun = true
        job.run
        true
      ensure
        end_job(job, begun) if job
      end

      def end_job(job, begun)
        @lock.synchronize { @busy -= 1 }
        job.send_back unless begun
      end

      # The program has killed the thread. The signal for the last job of the line may have come to this thread.
      def killed
        jobs = @lock.synchronize do
          @threads -= 1
          @came.signal
          left_by_killed
        end
        jobs.each { |job| job.send_back if leave_line(job) }
      end

      # @return [Array<BlockingJob>] the jobs of the line that have to be handed over once more
      def left_by_killed
        return @line.keys if @threads <= @lasting

        @busy > @threads && @threads < MAX_THREADS + @lasting ? @line.keys.last(1) : []
      end

      # May the thread end? Not while work is on its way.
      def leave?
        @lock.synchronize { (@busy < @threads).tap { |idle| @threads -= 1 if idle } }
      end
    end
    private_constant :BlockingPool
  end
end
