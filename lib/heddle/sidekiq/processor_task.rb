# frozen_string_literal: true

require_relative "../loop_thread"

module Heddle
  module Sidekiq
    # The task of a Sidekiq::Processor, with those methods of a thread that Sidekiq and its tests call. All of them run
    # in one thread, which starts with the first, and ends with the last.
    #
    # @private
    class ProcessorTask
      # So many processors of a capsule wait for jobs at the same time. A fetch takes less than a millisecond when there
      # are jobs, so that these are enough for thousands of jobs a second.
      FETCHERS = 10
      BY_THREAD = "heddle/sidekiq: ActiveSupport keeps its state by thread, so all jobs would share one connection " \
                  "to the database, and one set of Current attributes. Set config.active_support.isolation_level = " \
                  ":fiber in config/application.rb (without Rails: " \
                  "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber)."
      private_constant :FETCHERS, :BY_THREAD

      @lock = Mutex.new
      @running = 0 # processors that use @loop
      @fetchers = ObjectSpace::WeakKeyMap.new

      class << self
        # Runs the block as a task.
        #
        # @param processor [Sidekiq::Processor]
        # @return [ProcessorTask]
        # @raise [Heddle::Error] if ActiveSupport does not keep its state by fiber
        def start(processor, &)
          check_isolation
          loop = take_loop(processor)
          start_in(loop, processor, &)
        rescue Error
          raise unless loop&.closed?

          start_in(take_loop(processor), processor, &) # (an exception that was raised in its thread has ended that one)
        end

        # @param capsule [Sidekiq::Capsule]
        # @return [Heddle::Limiter]
        def fetchers(capsule) = @fetchers[capsule] || @lock.synchronize { @fetchers[capsule] ||= Limiter.new(FETCHERS) }

        private

        def start_in(loop, processor, &block)
          started = false
          task = loop.start("#{processor.capsule.name}/processor") do
            started = true
            Context.name_task
            processor.watchdog("processor", &block)
          rescue ::Sidekiq::Shutdown # it has struck when the processor was about to end; it must not end the others
            nil
          ensure
            leave_loop(loop)
          end
          new(loop, task)
        ensure
          leave_loop(loop) unless started
        end

        def check_isolation
          return unless defined?(::ActiveSupport::IsolatedExecutionState)

          raise Error, BY_THREAD unless ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber
        end

        def take_loop(processor)
          @lock.synchronize do
            @loop = nil if @owner != ::Process.pid || @loop&.closed? # a fork has no threads
            @owner = ::Process.pid
            @running = 0 unless @loop
            @loop ||= LoopThread.new { |work| processor.safe_thread("heddle", &work) }
            @running += 1
            @loop
          end
        end

        def leave_loop(loop)
          @lock.synchronize do
            next unless @loop.equal?(loop)
            next unless (@running -= 1).zero?

            @loop = nil
            loop.close
          end
        end
      end

      # @param loop [LoopThread]
      # @param task [Heddle::Task]
      def initialize(loop, task)
        @loop = loop
        @task = task
      end

      # Waits for its end.
      # @return [Object, nil]
      def value = @task.value

      # @param error [Class<Exception>, Exception]
      # @return [void]
      def raise(error) = @loop.interrupt(@task, error.exception)

      # @return [String, false] as Thread#status has it
      def status = @task.alive? && "sleep"
    end
  end
end
