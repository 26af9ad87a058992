# frozen_string_literal: true

module Heddle
  class Server
    # Holds the connections between two requests. Each has an entry in an IdleSet and here, but no task. A connection
    # that has been idle for too long is closed.
    #
    # @private
    class IdleConnections
      # @param timeout [Numeric] seconds
      # @param leave [#call] closes a connection
      # @yield [connection] a connection that can be read; in the task of {#run}
      def initialize(timeout, leave:, &ready)
        @timeout = timeout
        @leave = leave
        @ready = ready
        @set = IdleSet.new
        @waiting = {}.compare_by_identity # socket => [connection, until], in the order in which they are closed
      end

      def size = @waiting.size

      # @param connection [Connection]
      def add(connection)
        @set.add(connection.socket)
        @waiting[connection.socket] = [connection, now + @timeout]
      end

      # Waits for the connections until {#close}.
      def run
        until @set.closed?
          wake(@set.wait(@waiting.empty? ? @timeout : [first_limit - now, 0].max))
          close_overdue
        end
      rescue IOError
        raise unless @set.closed?
      end

      # Hands on all connections that can be read by now.
      def wake_all
        until @set.closed? || (sockets = @set.wait(0)).empty?
          wake(sockets)
        end
      end

      # Closes the connection that has been idle for the longest time, to make room for another one.
      #
      # @return [Boolean] whether there was an idle connection
      def close_oldest
        socket, (connection,) = @waiting.shift
        return false unless socket

        @set.delete(socket)
        @leave.call(connection)
        true
      end

      # Closes all of them, and ends {#run}.
      def close
        close_oldest until @waiting.empty?
        @set.close
      end

      private

      def now = Clock.now
      def first_limit = @waiting.first.last.last

      def wake(sockets)
        sockets.each do |socket|
          connection, = @waiting.delete(socket)
          @ready.call(connection) if connection
        end
      end

      def close_overdue
        time = now
        close_oldest while !@waiting.empty? && first_limit <= time
      end
    end
  end
end
