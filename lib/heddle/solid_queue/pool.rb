# frozen_string_literal: true

require_relative "../internal/loop_thread"

module Heddle
  # Runs the jobs of Solid Queue's workers that have `fibers: 500` in config/queue.yml as tasks of one thread, with
  # `require "heddle/solid_queue"`. guides/jobs.md shows how to use it.
  #
  # @private
  module SolidQueue
    # Replaces SolidQueue::FiberPool, which needs the gem async. The worker claims one job for each free place, and
    # hands the jobs over; everything else is Solid Queue's own.
    class FiberPool < ::SolidQueue::Pool
      # @return [Numeric, false, nil] the time slice of its jobs: see Heddle.run
      attr_writer :time_slice

      def initialize(...)
        super
        @lock = Mutex.new
        @loop = nil
        @shutdown = false
      end

      # Returns the number of free places, which the worker requests before it claims jobs.
      #
      # @return [Integer]
      # @raise [Heddle::Error] if an exception has ended the thread: the worker ends then, and another one takes its
      #   place, as with the gem async
      def available_capacity
        @lock.synchronize { raise Error, "the thread of the jobs has ended" if @loop&.closed? && !@shutdown }
        super
      end

      # @return [Boolean] false if it was called before
      def shutdown
        @lock.synchronize do
          next false if @shutdown

          @loop&.close
          @shutdown = true
        end
      end

      # @return [Boolean]
      def shutdown? = @shutdown

      # @param timeout [Numeric] seconds
      # @return [Boolean] have all jobs ended?
      def wait_for_termination(timeout) = @loop.nil? || !@loop.join(timeout).nil?

      private

      # Starts a job. The thread starts with the first job, so that it does not exist before the worker is forked.
      def schedule(execution)
        @lock.synchronize do
          raise Error, "the pool is shut down" if @shutdown

          @loop ||= new_loop
          @loop.post("job #{execution.job_id}") { perform_execution(execution) }
        end
      end

      def new_loop
        LoopThread.new(time_slice: TimeSlices.chosen(@time_slice)) { |work| create_thread(&work) }
      end

      # The name of its thread.
      def name = "solid_queue.heddle"
    end

    # Takes the place of a method of SolidQueue::Pool.
    module Build
      def build(type:, size:, **) = type.to_sym == :fiber ? FiberPool.new(size, **) : super
    end

    # Takes the place of a method of SolidQueue::Worker: it takes the setting time_slice of a worker with fibers, in
    # seconds. 0 or false: none.
    module Worker
      def initialize(**options)
        time_slice = options[:time_slice]
        time_slice = false if time_slice == 0
        TimeSlices.check(time_slice)
        super
        pool.time_slice = time_slice if pool.is_a?(FiberPool)
      end
    end

    # Takes the place of a method of SolidQueue::Configuration, which asks for the gem async.
    module Configuration
      private

      def ensure_fiber_workers_have_required_dependency = nil
    end

    # 500 jobs share the connections of a pool with the worker, which claims jobs. Jobs that wait in line for longer
    # than 5 seconds would fail, and the worker would end. A time that the program has set in database.yml stays.
    module Patience
      SECONDS = 60

      # @return [void]
      def self.give
        ::ActiveRecord::Base.connection_handler.connection_pool_list(:all).each do |pool|
          pool.checkout_timeout = SECONDS unless pool.db_config.configuration_hash.key?(:checkout_timeout)
        end
      end
    end

    feature = "heddle/solid_queue"
    ::SolidQueue.on_worker_start { |worker| Patience.give if worker.pool.is_a?(FiberPool) }
    Adapters.prepend_to("solid_queue", ::SolidQueue::Pool.singleton_class, Build, feature:)
    Adapters.prepend_to("solid_queue", ::SolidQueue::Worker, Worker, feature:)
    Adapters.prepend_to("solid_queue", ::SolidQueue::Configuration, Configuration, feature:)
  end
  private_constant :SolidQueue
end
