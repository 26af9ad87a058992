# frozen_string_literal: true

require_relative "shared_thread"

module Heddle
  module Sidekiq
    # The task of a Sidekiq::Processor, with the methods of a thread that Sidekiq and its tests call. Nobody waits for
    # its start, so that a job that computes delays neither the start of the others nor the main thread.
    #
    # @private
    class ProcessorTask
      BY_THREAD = "heddle/sidekiq: ActiveSupport keeps its state by thread, so all jobs would share one connection " \
                  "to the database, and one set of Current attributes. Set config.active_support.isolation_level = " \
                  ":fiber in config/application.rb (without Rails: " \
                  "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber)."
      private_constant :BY_THREAD

      # @param processor [Sidekiq::Processor]
      # @yield in the task
      # @raise [Heddle::Error] if ActiveSupport does not keep its state by fiber
      def initialize(processor, &work)
        check_isolation
        @processor = processor
        @work = work
        @ended = Thread::Queue.new
        JOBS.enter
        start
      end

      # Waits for the end of the task.
      # @return [nil]
      def value = @ended.pop

      # Raises the error in the task. Does nothing before the task has started: a caller that kills a processor also
      # says that it is done.
      #
      # @param error [Class<Exception>, Exception]
      # @return [void]
      def raise(error) = @task && @loop.interrupt(@task, error.exception)

      # @return [String, false] as Thread#status has it
      def status = !@ended.closed? && "sleep"

      private

      def check_isolation
        return unless defined?(::ActiveSupport::IsolatedExecutionState)

        Kernel.raise(Error, BY_THREAD) unless ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber
      end

      def start
        JOBS.post(@processor, "#{@processor.capsule.name}/processor", refused: method(:start)) do |loop|
          @loop = loop
          @task = Heddle.current_task
          Context.name_task
          @processor.watchdog("processor", &@work)
        rescue ::Sidekiq::Shutdown # it was raised when the processor was about to end; it must not end the others
          nil
        ensure
          leave
        end
      rescue StandardError # Ruby cannot start the thread
        leave
        Kernel.raise
      end

      def leave
        JOBS.leave
        @ended.close
      end
    end
    private_constant :ProcessorTask
  end
end
