# frozen_string_literal: true

require_relative "fiber_pool/job"

module Heddle
  # Starts jobs as tasks, and limits how many run at the same time. Further jobs wait in line, without a fiber and its
  # stack, until another job has ended. The caller of +spawn+ does not wait.
  #
  # All jobs, also the jobs in line, are tasks of the scope in which the pool was made. So you need not close a pool:
  # the end of this scope waits for all jobs. The first job that fails cancels the others, and the scope raises its
  # error.
  #
  # @example A thousand requests, twenty at a time
  #   Heddle.run do
  #     pool = Heddle::FiberPool.new(20)
  #     urls.each { |url| pool.spawn { fetch(url) } }
  #   end
  class FiberPool
    # @return [Integer] how many jobs run at the same time
    attr_reader :size

    # @param size [Integer] how many jobs may run at the same time
    # @raise [ArgumentError] if the size is not positive
    # @raise [Heddle::Error] outside of Heddle.run
    def initialize(size)
      Check.positive_integer("size", size)

      @size = size
      @scope = Scope.current
      @running = {}.compare_by_identity # the jobs that have a place
      @line = {}.compare_by_identity # the jobs that wait for a place, the first one first
      @starting = Mutex.new
    end

    # @return [Integer] how many jobs run now
    def running = @running.size

    # @return [Integer] how many jobs wait in line
    def waiting = @line.size

    # Starts a job, or puts it in line. Even if it starts later, it gets the arguments and the Fiber storage of this
    # moment. A job may spawn further jobs. But while it waits for a job that is in line, it counts as a running job.
    #
    # If a job is cancelled while it is in line, its block is not called.
    #
    # @param arguments [Array<Object>] the arguments of the block
    # @param name [String, Symbol, nil] for reports
    # @yieldparam arguments [Array<Object>]
    # @return [Heddle::Task] its status is :waiting while it is in line
    # @raise [ArgumentError] without a block, or if the name is neither a String nor a Symbol
    # @raise [Heddle::Error] when the scope of the pool has ended, or in another thread
    def spawn(*arguments, name: nil, &)
      Check.refuse("Heddle::FiberPool#spawn needs a block") unless block_given?

      elsewhere = @scope.open? && !@scope.runs_here?
      raise Error, "a FiberPool starts its jobs only in the thread that has made it" if elsewhere

      job = Job.new(@scope, name, self)
      return line_up(job, arguments, &) unless room? && @line.empty?

      begin
        @running[job] = true
        @scope.start(job, arguments, &)
      ensure
        @running.delete(job) unless job.started?
      end
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{running} of #{size}#{", #{waiting} waiting" if waiting.positive?}>"
    end

    # @private
    def put_in_line(job) = @line[job] = true

    # @private
    # @return [Boolean, nil] was the job in line?
    def take_out_of_line(job) = @line.delete(job)

    # @private Starts the next jobs when a job that had a place has ended. A job may call this twice.
    def job_ended(job)
      @running.delete(job)
      start_jobs
    end

    private

    def room? = @running.size < @size

    # A job may have ended since the look at the places, and found nobody in line.
    def line_up(job, arguments, &)
      @scope.line_up(job, arguments, &).tap { start_jobs }
    end

    # Starts jobs while there is room. A job that ends before it waits for anything calls this inside of start_next, and
    # leaves the other jobs to that call: otherwise ever more fibers would wait for one another.
    def start_jobs
      while room? && !@line.empty? && @starting.try_lock
        begin
          start_next
        ensure
          @starting.unlock
        end
      end
    end

    # The job has a place before it leaves the line, so no job that is spawned meanwhile takes this place.
    def start_next
      job, = @line.first
      return unless job

      @running[job] = true
      return @running.delete(job) unless take_out_of_line(job) # another thread has cancelled it

      job.start_from_line
    rescue Exception => e # rubocop:disable Lint/RescueException -- it would never be missed
      give_up(job, e) if job && !job.started?
      raise unless e.is_a?(FiberError) # Ruby had no stack for it
    end

    def give_up(job, error)
      @running.delete(job)
      take_out_of_line(job)
      job.end_in_line(error)
    end
  end
end
