# frozen_string_literal: true

require "logger"

module Heddle
  module Sidekiq
    # Hands its lines to another thread, which writes them: the caller waits for no lock of the log.
    #
    # @private
    class HandedLog < ::Logger
      # @param logger [Object]
      # @return [Boolean]
      def self.fits?(logger) = logger.respond_to?(:add) && logger.respond_to?(:level) && logger.level.is_a?(Integer)

      # @param logger [Logger]
      def initialize(logger)
        super(nil)
        @logger = logger
        @lines = Thread::Queue.new
        @writer = Thread.new { write }
      end

      def level = @logger.level

      def add(severity, message = nil, progname = nil)
        return true if severity < level

        message ||= block_given? ? yield : progname
        @lines << [severity, message]
        true
      rescue ClosedQueueError # only this thread of the process is left
        true
      end

      # Waits until all lines are written. Lines that the log does not accept are written to stderr.
      #
      # @param seconds [Numeric]
      # @return [void]
      def flush(seconds)
        @lines.close
        return if @writer.join(seconds)

        stderr = IO.for_fd(2, "w", autoclose: false) # not $stderr, which a task may hold
        stderr.syswrite("#{@line.last}\n") if @line
        while (line = @lines.pop)
          stderr.syswrite("#{line.last}\n")
        end
      rescue SystemCallError
        nil
      end

      private

      def write
        @logger.add(*@line) while (@line = @lines.pop)
      end
    end
    private_constant :HandedLog
  end
end
