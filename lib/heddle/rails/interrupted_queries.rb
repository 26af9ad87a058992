# frozen_string_literal: true

module Heddle
  module Rails
    # Closes a connection whose query was interrupted by a cancel or a timeout, when it goes back to the pool. The next
    # task that gets it connects anew. Otherwise that task would wait for the rest of the answer, or find the connection
    # closed, or be in a transaction that ActiveRecord does not know: a BEGIN that was interrupted has reached the
    # server, but ActiveRecord assumes that it has not begun, and rolls nothing back.
    #
    # @private
    module InterruptedQueries
      # @return [void]
      def self.start
        adapter = ::ActiveRecord::ConnectionAdapters::AbstractAdapter
        return if adapter < self

        adapter.prepend(self)
        adapter.set_callback(:checkin, :before, :disconnect_interrupted)
      end

      private

      def with_raw_connection(...)
        interrupted = true
        super.tap { interrupted = false }
      rescue ::ActiveRecord::ActiveRecordError # the database has refused, and ActiveRecord handles that
        interrupted = false
        raise
      ensure
        @heddle_interrupted = true if interrupted
      end

      def disconnect_interrupted
        return unless @heddle_interrupted

        @heddle_interrupted = false
        disconnect!
      end
    end
  end
end
