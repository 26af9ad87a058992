# frozen_string_literal: true

require_relative "../internal/loop_thread"

module Heddle
  # What `require "heddle/solid_queue"` adds: the workers of Solid Queue that have `fibers: 500` in config/queue.yml run
  # their jobs as tasks of one thread. guides/jobs.md shows how to use it.
  #
  # @private
  module SolidQueue
    # Takes the place of SolidQueue::FiberPool, which needs the gem async. The worker claims as many jobs as there are
    # free places, and hands them over; all else is Solid Queue's own.
    class FiberPool < ::SolidQueue::Pool
      def initialize(...)
        super
        @lock = Mutex.new
        @loop = nil
        @shutdown = false
      end

      # The worker asks before it claims jobs.
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

      # The thread starts with the first job: not before the worker is forked.
      def schedule(execution)
        @lock.synchronize do
          raise Error, "the pool is shut down" if @shutdown

          @loop ||= LoopThread.new { |work| create_thread(&work) }
          @loop.post("job #{execution.job_id}") { perform_execution(execution) }
        end
      end

      # That of its thread.
      def name = "solid_queue.heddle"
    end

    # Takes the place of a method of SolidQueue::Pool.
    module Build
      def build(type:, size:, **) = type.to_sym == :fiber ? FiberPool.new(size, **) : super
    end

    # Takes the place of a method of SolidQueue::Configuration, which asks for the gem async.
    module Configuration
      private

      def ensure_fiber_workers_have_required_dependency = nil
    end

    feature = "heddle/solid_queue"
    Adapters.prepend_to("solid_queue", ::SolidQueue::Pool.singleton_class, Build, feature:)
    Adapters.prepend_to("solid_queue", ::SolidQueue::Configuration, Configuration, feature:)
  end
  private_constant :SolidQueue
end
