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
        @kept = [] # what has come while something else was waited for
        @reader, @writer = IO.pipe
        owner = ::Process.pid
        meanings.each_key.with_index do |name, index|
          trap(name) { @writer.write_nonblock(index.chr, exception: false) if ::Process.pid == owner }
        end
      end

      # @param timeout [Numeric, nil] seconds
      # @return [Symbol, nil] the meaning of the next one
      def pop(timeout: nil)
        @kept.shift || next_one(timeout)
      end

      # Waits for something else. What comes meanwhile is kept for {#pop}.
      #
      # @param other [IO] that is to have something to be read
      # @param timeout [Numeric] seconds
      # @param but [Array<Symbol>] the meanings that end the wait, also if they have come before
      # @return [Boolean] whether it has
      def wait_for(other, timeout, but:)
        ends = Clock.now + timeout
        until come?(but)
          found, = IO.select([other, @reader], nil, nil, [ends - Clock.now, 0].max)
          return !found.nil? unless found&.include?(@reader)
        end
        false
      end

      # @param meanings [Array<Symbol>]
      # @return [Boolean] whether one of these is to be popped
      def come?(meanings)
        @kept << next_one(0) while @reader.wait_readable(0)
        @kept.intersect?(meanings)
      end

      # In a child process, which has its own.
      def leave
        [@reader, @writer].each(&:close)
      end

      private

      def next_one(timeout) = (@meanings[@reader.getbyte] if @reader.wait_readable(timeout))
    end
  end
end
