# frozen_string_literal: true

require_relative "handed_log"

module Heddle
  module Sidekiq
    # Ends a process while a job computes and stops all tasks. A task that is stopped may hold a lock: the lock of the
    # log, or a lock of the application. The thread that ends the process must not wait for it.
    #
    # @private
    module Ending
      # Seconds to wait for a lock.
      PATIENCE = 0.5
      private_constant :PATIENCE

      @begun = false
      @logs = ObjectSpace::WeakKeyMap.new

      class << self
        # Makes the threads of Sidekiq hand their lines to another thread from now on.
        # @return [void]
        def start
          at_exit { @logs_made&.each { |log| log.flush(PATIENCE) } } unless @logs_made
          @logs_made ||= []
          @begun = true
        end

        # Called when the engine runs again.
        # @return [void]
        def over = @begun = false

        # @param logger [Object]
        # @return [Object] the logger to write to
        def logger(logger)
          return logger unless @begun && JOBS.used? && Fiber.current.blocking? && HandedLog.fits?(logger)

          @logs[logger] || (@logs[logger] = HandedLog.new(logger)).tap { |log| @logs_made << log }
        end

        # Runs a block that may wait for a lock in another thread. Does not wait for it while a job computes.
        # @return [void]
        def patiently(&)
          return yield unless JOBS.used?

          thread = Thread.new(&)
          nil until thread.join(PATIENCE) || JOBS.late?(PATIENCE)
        end
      end

      # Takes the place of a method of Sidekiq::CLI.
      module CLI
        def handle_signal(*)
          Ending.start
          super
        end
      end

      # Takes the place of a method of Sidekiq::Config.
      module Config
        def logger = Ending.logger(super)
      end

      # Takes the place of methods of Sidekiq::Launcher.
      module Launcher
        EVENTS = %i[quiet shutdown exit].freeze
        private_constant :EVENTS

        def run(...)
          Ending.over
          super
        end

        def quiet
          Ending.start
          super
        end

        def fire_event(event, options = {})
          EVENTS.include?(event) ? Ending.patiently { super } : super
        end
      end

      # Takes the place of a method of Sidekiq::Scheduled::Poller.
      module Poller
        def terminate
          Ending.patiently { super }
        rescue StandardError # it has ended with an error before, which Sidekiq has reported
          nil
        end
      end
    end
  end
end
