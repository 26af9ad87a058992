# frozen_string_literal: true

require_relative "handed_log"

module Heddle
  module Sidekiq
    # How a process ends while a job computes, and holds up all tasks. A task that is held up may have a lock: that of
    # the log, or one of the application. Who ends the process must not wait for it.
    #
    # @private
    module Ending
      # Seconds.
      PATIENCE = 0.5
      private_constant :PATIENCE

      @begun = false
      @logs = ObjectSpace::WeakKeyMap.new

      class << self
        # From now on the threads of Sidekiq hand their lines to another thread.
        # @return [void]
        def start
          at_exit { @logs_made&.each { |log| log.flush(PATIENCE) } } unless @logs_made
          @logs_made ||= []
          @begun = true
        end

        # The engine runs again.
        # @return [void]
        def over = @begun = false

        # @param logger [Object]
        # @return [Object] where to write to
        def logger(logger)
          return logger unless @begun && JOBS.used? && Fiber.current.blocking? && HandedLog.fits?(logger)

          @logs[logger] || (@logs[logger] = HandedLog.new(logger)).tap { |log| @logs_made << log }
        end

        # Runs what may wait for a lock in another thread. Does not wait for it while a job computes.
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
        rescue StandardError # it has ended with an error before, of which Sidekiq has told
          nil
        end
      end
    end
  end
end
