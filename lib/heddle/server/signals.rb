# frozen_string_literal: true

module Heddle
  class Server
    # Signals as events, for a process that waits for nothing else. (A Queue would not do: where the handler runs in the
    # thread that waits in pop(timeout:), Ruby wakes it only when the time is over.) A child process has the same
    # handlers until it sets its own: what comes for it meanwhile is not for this one.
    #
    # @private
    class Signals
      # @param meanings [Hash{String => Symbol}] of each signal
      def initialize(meanings)
        @meanings = meanings.values
        @reader, @writer = IO.pipe
        owner = ::Process.pid
        meanings.each_key.with_index do |name, index|
          trap(name) { @writer.write_nonblock(index.chr, exception: false) if ::Process.pid == owner }
        end
      end

      # @param timeout [Numeric, nil] seconds
      # @return [Symbol, nil] the meaning of the next one
      def pop(timeout: nil)
        @meanings[@reader.getbyte] if @reader.wait_readable(timeout)
      end

      # In a child process, which has its own.
      def leave
        [@reader, @writer].each(&:close)
      end
    end
  end
end
